#include "benchmarks/recovery/worker_digits.hpp"

#include <algorithm>
#include <string>

namespace elastic::bench {

namespace {

std::int64_t digit_in(int call) {
  return 1 + call % 4;
}

Status wrong(int call, std::int64_t sum, const std::string& why) {
  return Status(Code::kInternal, "call " + std::to_string(call) + " gave the wrong sum " +
                                     std::to_string(sum) + ": " + why);
}

}  // namespace

std::int64_t digit_of(int call, int start_rank) {
  std::int64_t digit = digit_in(call);
  for (int place = 0; place < start_rank; ++place) digit *= 10;
  return digit;
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
  std::int64_t rest = sum;
  for (int worker = 0; worker < workers; ++worker, rest /= 10) {
    const std::int64_t digit = rest % 10;
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
