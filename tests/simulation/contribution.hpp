#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coordinator/operation.hpp"
#include "nodes.hpp"

namespace elastic::simulation {

/// Tells calls apart in their data: a function of which call it is.
std::int64_t salt_of(std::uint64_t seed, std::uint64_t step, std::uint64_t call);
/// A number that all workers draw alike for a call.
inline std::uint64_t drawn(std::uint64_t seed, std::uint64_t step, std::uint64_t call) {
  return static_cast<std::uint64_t>(salt_of(seed + 77, step, call)) >> 4U;
}

/// A worker's contribution to a sum. It holds a digit of four bits for each worker, of which the
/// worker sets its own to one, so that the sum shows how often each worker was counted. The other
/// numbers are the same on all workers, so that the sum shows the call and the view it is from.
class Contribution {
 public:
  /// `most`: how many workers there can be in the run.
  Contribution(Node self, Node most, std::int64_t salt, std::size_t elements);

  /// The tensor, which becomes the sum.
  std::span<std::int64_t> data() { return data_; }
  TensorView view() { return {data_.data(), data_.size(), DType::kI64, {}}; }
  void set_generation(std::uint64_t generation);

  /// The workers that the sum counts. Errors are appended to `wrong`, a sentence each.
  /// `generation`: that of the view it was computed in; 0 if the contributions do not contain one.
  Nodes decode(std::uint64_t generation, std::string& wrong) const;

  void overwrite() { std::fill(data_.begin(), data_.end(), -1); }

  static constexpr std::size_t least_elements(Node most) { return 2 + (most + 15) / 16; }

 private:
  const Node most_;
  const std::int64_t salt_;
  std::vector<std::int64_t> data_;
};

/// An allreduce of a contribution. It writes down in which view each attempt is made.
class CountedAllreduce final : public coordinator::AllreduceOperation {
 public:
  /// `zero_copy`: as large tensors are done, however small this one is.
  /// `throws`: there is no memory for it.
  CountedAllreduce(Contribution& contribution, bool zero_copy, bool throws);
  void choose_ways(const plan::AllreduceLimits& limits) override;
  void pack(const coordinator::Members& members, collectives::Payload& payload) override;
  /// Leaves the tensor as it is where the result has come without its data.
  void unpack(const coordinator::Members& members, const collectives::Payload& payload) override;
  bool came_without_data() const { return came_without_data_; }

 private:
  Contribution& contribution_;
  const bool zero_copy_;
  const bool throws_;
  bool came_without_data_ = false;
};

}  // namespace elastic::simulation
