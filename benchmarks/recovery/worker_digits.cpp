#include "benchmarks/recovery/worker_digits.hpp"

#include <algorithm>
#include <string>

namespace elastic::bench {

namespace {

constexpr int kBitsOfDigit = 2;

std::uint64_t digit_in(int call) {
  return 1 + static_cast<std::uint64_t>(call) % 3;
}

Status wrong(int call, std::int64_t sum, const std::string& why) {
  return Status(Code::kInternal, "call " + std::to_string(call) + " gave the wrong sum " +
                                     std::to_string(sum) + ": " + why);
}

}  // namespace

std::int64_t digit_of(int call, int start_rank) {
  return static_cast<std::int64_t>(digit_in(call) << (kBitsOfDigit * start_rank));
}

Result<std::uint32_t> counted_in(std::span<const std::int64_t> sums, int call, int workers) {
  const std::int64_t sum = sums.front();
  const auto other = std::find_if(sums.begin(), sums.end(),
                                  [sum](std::int64_t element) { return element != sum; });
  if (other != sums.end()) {
    return wrong(call, sum,
                 "element " + std::to_string(other - sums.begin()) + " has " +
                     std::to_string(*other) + ", so others were counted in a part of the tensor");
  }
  std::uint32_t counted = 0;
  auto rest = static_cast<std::uint64_t>(sum);
  for (int worker = 0; worker < workers; ++worker, rest >>= kBitsOfDigit) {
    const std::uint64_t digit = rest % (1U << kBitsOfDigit);
    if (digit != 0 && digit != digit_in(call)) {
      return wrong(call, sum,
                   "worker " + std::to_string(worker) + " contributed " +
                       std::to_string(digit_in(call)) + " and was counted as " +
                       std::to_string(digit));
    }
    if (digit != 0) counted |= std::uint32_t{1} << worker;
  }
  if (rest != 0) return wrong(call, sum, "there are no workers that contribute to its high places");
  return counted;
}

}  // namespace elastic::bench
