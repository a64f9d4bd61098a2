#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/types.hpp"
#include "training/tensor_sums.hpp"

namespace elastic::detail {

/// Sums of real tensors over the virtual workers of a step that do not depend on the order: first
/// all workers agree on each tensor's greatest magnitude, then they add whole numbers. Two
/// collectives, with this worker's part in each made here. Keeps the gradients of the virtual
/// workers that were computed here, because the first needs all of them and the second again.
class ExactSum {
 public:
  /// Begins a step of `virtual_workers` (at least 1). The tensors stay the caller's.
  void begin(training::Tensors tensors, std::size_t virtual_workers);

  /// Keeps what the tensors hold as the gradient of `virtual_worker`. After `agree`, throws
  /// Error(kInvalidArgument) where it is greater than it can have been the first time.
  void keep(std::size_t virtual_worker);
  bool has(std::size_t virtual_worker) const { return places_[virtual_worker] != kNowhere; }

  /// To be maximised over all workers: per tensor.
  TensorView magnitudes();
  /// The magnitudes are those of all virtual workers, and remain.
  void agree() { agreed_ = true; }

  /// Adds up those given, which are kept here.
  void sum(std::span<const std::size_t> virtual_workers);
  /// To be added up over all workers: one element for each of all tensors.
  TensorView sums();
  /// The sums are complete over the workers, and others are to follow: puts them aside.
  void put_aside();

  /// Writes the sums to the tensors, with those put aside.
  void finish();

 private:
  using Kept = std::vector<std::byte>;  // of all tensors, at offsets_
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  void note_magnitude(std::size_t tensor, double greatest, std::size_t virtual_worker);
  void sum_tensor(std::size_t tensor, const std::vector<const Kept*>& summands,
                  std::span<std::int64_t> sums) const;
  void add_aside();

  std::vector<TensorView> tensors_;
  std::size_t virtual_workers_ = 1;
  std::vector<double> magnitudes_;
  bool agreed_ = false;
  std::vector<Kept> kept_;           // the first kept_count_ are of this step
  std::vector<std::size_t> places_;  // in kept_, of each virtual worker
  std::size_t kept_count_ = 0;
  std::vector<std::size_t> offsets_;  // of each tensor in Kept
  std::size_t kept_bytes_ = 0;
  std::vector<std::int64_t> sums_;
  std::vector<std::int64_t> aside_;  // empty: nothing was put there in this step
};

}  // namespace elastic::detail
