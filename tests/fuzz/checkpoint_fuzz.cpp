// A checkpoint file with any contents. With an odd first byte its sizes and its checksum fit, so
// that what is inside is looked at, too.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/mman.h>

#include "base/hash.hpp"
#include "base/unique_fd.hpp"
#include "elastic/error.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_state.hpp"
#include "training/checkpoint.hpp"

namespace elastic::training {
namespace {

/// Offset of the file's size, which follows magic and version.
constexpr std::size_t kFileBytesAt = 16;

void repair(std::vector<std::byte>& file) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (file.size() < kFileBytesAt + 2 * kWord) return;
  const std::uint64_t size = file.size();
  std::memcpy(file.data() + kFileBytesAt, &size, kWord);
  const std::uint64_t hash = hash_of(std::span(file).first(file.size() - kWord));
  std::memcpy(file.data() + file.size() - kWord, &hash, kWord);
}

/// A file in memory, by the name that it has for this process.
class File {
 public:
  explicit File(const std::vector<std::byte>& contents)
      : descriptor_(::memfd_create("checkpoint", MFD_CLOEXEC)) {
    const ssize_t written = ::write(descriptor_.get(), contents.data(), contents.size());
    fuzz::require(written == static_cast<ssize_t>(contents.size()), "there is memory for a file");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_.get()); }

 private:
  UniqueFd descriptor_;
};

void load(fuzz::Input input) {
  const bool fits = input.byte() % 2U == 1;
  const auto bytes = input.bytes(input.size());
  std::vector<std::byte> contents(bytes.begin(), bytes.end());
  if (fits) repair(contents);
  const File file(contents);
  fuzz::FuzzState loaded;
  const auto before = loaded.contents();
  try {
    fuzz::require(load_checkpoint(loaded.state(), file.path()), "a file that is there is read");
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kInvalidArgument, error.what());
    fuzz::require(loaded.contents() == before && loaded.state().commits() == 0,
                  "a failure leaves the state as it was");
  }
}

}  // namespace
}  // namespace elastic::training

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::training::load(elastic::fuzz::Input(data, size));
  return 0;
}
