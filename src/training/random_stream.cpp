#include "elastic/error.hpp"
#include "elastic/global_batch.hpp"
#include "training/mix.hpp"
#include "training/philox.hpp"

namespace elastic {
namespace {

constexpr std::uint32_t low(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}
constexpr std::uint32_t high(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}

}  // namespace

/// Seed and epoch make the key; steps and virtual workers are in the counter, so that their streams
/// have no number in common.
RandomStream::RandomStream(const Key& key)
    : counter_{0, key.virtual_worker, low(key.step), high(key.step)}, used_(block_.size()) {
  const std::uint64_t mixed = training::mix(training::mix(key.seed) + key.epoch);
  key_ = {low(mixed), high(mixed)};
}

RandomStream::result_type RandomStream::operator()() {
  if (used_ == block_.size()) {
    block_ = training::philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t RandomStream::word() {
  const std::uint64_t first = (*this)();
  return first << 32 | (*this)();
}

double RandomStream::uniform() {
  return static_cast<double>(word() >> 11) * 0x1p-53;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  if (bound == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "RandomStream: below(0): no number is; give a bound of at least 1");
  }
  // Rejects the few words that would favour small results.
  const std::uint64_t uneven = (0 - bound) % bound;
  std::uint64_t random = word();
  while (random < uneven) random = word();
  return random % bound;
}

}  // namespace elastic
