// Input of a peer that has not authenticated yet, to a side that accepts and to one that dials:
// hello, context, challenge, proof and verdict; and the greeting of a data link, which the context
// carries. The first byte chooses the reader. If the second byte is odd, magic and version are
// valid, so that the bytes after them are parsed, too.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/handshake.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "fuzz/fuzz_input.hpp"

namespace elastic {
namespace {

using namespace handshake;

/// Magic and version, with which both hello and challenge begin.
constexpr std::size_t kPrefixBytes = 5;

template <std::size_t kBytes>
std::array<std::byte, kBytes> taken(fuzz::Input& input) {
  std::array<std::byte, kBytes> result{};
  const auto bytes = input.bytes(kBytes);
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

template <std::size_t kBytes>
void repair(std::array<std::byte, kBytes>& message) {
  static const std::vector<std::byte> right = Dialer({}, Purpose::kControl, "").hello();
  std::copy_n(right.begin(), kPrefixBytes, message.begin());
}

void require_refusal(const Status& status) {
  fuzz::require(status.code() == Code::kRefused || status.code() == Code::kProtocol,
                "failures are kRefused or kProtocol");
}

/// No peer gets in whose proof was made without the secret.
void accept(fuzz::Input input, bool fits) {
  static const Secret secret = random_secret();
  Acceptor acceptor(secret, Purpose::kData, input.byte() % 2U == 1);
  auto hello = taken<kHelloBytes>(input);
  if (fits) repair(hello);
  const Result<std::size_t> length = acceptor.hello(hello);
  if (!length.ok()) return require_refusal(length.status());
  fuzz::require(length.value() <= kMaxContextBytes, "the context's length is bounded");
  const auto context = input.bytes(length.value());
  if (context.size() < length.value()) return;
  const auto challenge = acceptor.challenge(context);
  fuzz::require(challenge.ok() && challenge.value().size() == kChallengeBytes,
                "a challenge has its size");
  if (const Status agreed = acceptor.agree(); !agreed.ok()) require_refusal(agreed);
  const Status checked = acceptor.check(taken<kProofBytes>(input));
  fuzz::require(!checked.ok(), "a proof without the secret is none");
  require_refusal(checked);
}

/// A challenge made without the secret is not taken for that of an acceptor.
void dial(fuzz::Input input, bool fits) {
  static const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, "context", input.byte() % 2U == 1);
  auto challenge = taken<kChallengeBytes>(input);
  if (fits) repair(challenge);
  const Result<std::vector<std::byte>> answer = dialer.answer(challenge);
  fuzz::require(!answer.ok(), "a challenge without the secret is not answered");
  require_refusal(answer.status());
  if (const Status end = Dialer::finish(taken<kVerdictBytes>(input)); !end.ok()) {
    require_refusal(end);
  }
}

void read_greeting(fuzz::Input input) {
  const Result<transport::LinkGreeting> greeting =
      transport::decode_greeting(std::string(input.text(input.size())));
  if (!greeting.ok()) return;
  const transport::LinkGreeting& from = greeting.value();
  fuzz::require(from.streams > 0 && from.stream < from.streams, "a stream is one of the link's");
  const Result<transport::LinkGreeting> again = transport::decode_greeting(encode(from));
  fuzz::require(again.ok() && encode(again.value()) == encode(from), "a greeting comes back");
}

}  // namespace
}  // namespace elastic

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::fuzz::Input input(data, size);
  const unsigned reader = input.byte() % 3U;
  const bool fits = input.byte() % 2U == 1;
  if (reader == 0) elastic::accept(input, fits);
  if (reader == 1) elastic::dial(input, fits);
  if (reader == 2) elastic::read_greeting(input);
  return 0;
}
