// The image of a state, as a donor sends it to a joiner. With an odd first byte its header and its
// hashes fit, so that what is inside is looked at, too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/hash.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_state.hpp"
#include "training/state_image.hpp"

namespace elastic::training {
namespace {

constexpr std::size_t kHeaderBytes = 64;

std::uint64_t word_at(const Image& image, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, image.data() + at, sizeof word);
  return word;
}

void put_word(Image& image, std::size_t at, std::uint64_t word) {
  std::memcpy(image.data() + at, &word, sizeof word);
}

/// Magic, size and number of entries as they are in `right`; each part's hash as its bytes are.
void repair(Image& image, const Image& right) {
  if (image.size() < kHeaderBytes) return;
  std::copy_n(right.begin(), 3 * sizeof(std::uint64_t), image.begin());
  put_word(image, sizeof(std::uint64_t), image.size());
  for (std::size_t at = kHeaderBytes; image.size() - at >= kHeaderBytes;) {
    const std::uint64_t bytes = word_at(image, at);
    const std::size_t from = at + kHeaderBytes;
    if (bytes > image.size() - from) return;
    put_word(image, at + sizeof(std::uint64_t), hash_of(std::span(image).subspan(from, bytes)));
    at = from + (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
    if (at > image.size()) return;
  }
}

void receive(fuzz::Input input) {
  const bool fits = input.byte() % 2U == 1;
  fuzz::FuzzState receiver;
  const Image own = serialize(receiver.state());
  const auto before = receiver.contents();
  const auto bytes = input.bytes(input.size());
  Image image(bytes.begin(), bytes.end());
  if (fits) repair(image, own);
  const Status status = restore_all_but_large(receiver.state(), image);
  if (!status.ok()) {
    fuzz::require(status.code() == Code::kMismatch || status.code() == Code::kRefused,
                  "failures are kMismatch, or kRefused where an object does not load");
    fuzz::require(receiver.contents() == before && serialize(receiver.state()) == own,
                  "a failure leaves the state as it was");
    return;
  }
  fuzz::require(receiver.contents().large == before.large, "large entries stay");
  const Image now = serialize(receiver.state());
  fuzz::FuzzState another;
  fuzz::require(
      restore_all_but_large(another.state(), now).ok() && another.contents() == receiver.contents(),
      "the state can be passed on");
}

}  // namespace
}  // namespace elastic::training

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::training::receive(elastic::fuzz::Input(data, size));
  return 0;
}
