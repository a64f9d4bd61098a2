#include "contribution.hpp"

#include <algorithm>
#include <new>

namespace elastic::simulation {

namespace {

constexpr std::size_t kGeneration = 0;
constexpr std::size_t kSalt = 1;
constexpr std::size_t kDigits = 2;
constexpr std::size_t kDigitsPerElement = 16;

constexpr std::size_t element_of(Node worker) {
  return kDigits + worker / kDigitsPerElement;
}
constexpr unsigned shift_of(Node worker) {
  return 4 * static_cast<unsigned>(worker % kDigitsPerElement);
}

}  // namespace

std::int64_t salt_of(std::uint64_t seed, std::uint64_t step, std::uint64_t call) {
  std::uint64_t mixed = (seed * 1000003 + step) * 1000003 + call + 1;
  mixed = (mixed ^ (mixed >> 31U)) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::int64_t>(mixed >> 24U);  // a sum of many does not overflow
}

Contribution::Contribution(Node self, Node most, std::int64_t salt, std::size_t elements)
    : most_(most), salt_(salt), data_(std::max(elements, least_elements(most)), salt) {
  for (std::size_t i = kDigits; i < least_elements(most); ++i) data_[i] = 0;
  data_[kGeneration] = 0;
  data_[element_of(self)] = static_cast<std::int64_t>(std::uint64_t{1} << shift_of(self));
}

void Contribution::set_generation(std::uint64_t generation) {
  data_[kGeneration] = static_cast<std::int64_t>(generation);
}

Nodes Contribution::decode(std::uint64_t generation, std::string& wrong) const {
  Nodes counted;
  for (Node worker = 0; worker < most_; ++worker) {
    const auto digits = static_cast<std::uint64_t>(data_[element_of(worker)]);
    const std::uint64_t times = (digits >> shift_of(worker)) & 15U;
    if (times > 0) counted |= only(worker);
    if (times > 1) {
      wrong += " " + incarnation_of(worker) + " is counted " + std::to_string(times) + " times;";
    }
  }
  const auto count = static_cast<std::int64_t>(counted.count());
  for (std::size_t i = kSalt; i < data_.size(); ++i) {
    if (i > kSalt && i < least_elements(most_)) continue;
    if (data_[i] == count * salt_) continue;
    wrong += " element " + std::to_string(i) + " is not of this call;";
    break;
  }
  const auto sum = static_cast<std::uint64_t>(data_[kGeneration]);
  if (generation != 0 && sum != static_cast<std::uint64_t>(count) * generation) {
    wrong += " contributions of another generation are counted;";
  }
  return counted;
}

CountedAllreduce::CountedAllreduce(Contribution& contribution, bool zero_copy, bool throws)
    : AllreduceOperation({ConstTensorView(contribution.view())}, {contribution.view()},
                         ReduceOp::kSum),
      contribution_(contribution),
      zero_copy_(zero_copy),
      throws_(throws) {}

void CountedAllreduce::choose_ways(const plan::AllreduceLimits& limits) {
  AllreduceOperation::choose_ways(zero_copy_ ? plan::AllreduceLimits{.zero_copy_from = 0} : limits);
}

void CountedAllreduce::pack(const coordinator::Members& members, collectives::Payload& payload) {
  if (throws_) throw std::bad_alloc();
  contribution_.set_generation(members.generation);
  AllreduceOperation::pack(members, payload);
}

void CountedAllreduce::unpack(const coordinator::Members& members,
                              const collectives::Payload& payload) {
  came_without_data_ =
      payload.zero_copy().empty() && payload.data.size() < contribution_.data().size_bytes();
  if (!came_without_data_) AllreduceOperation::unpack(members, payload);
}

}  // namespace elastic::simulation
