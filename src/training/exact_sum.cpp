#include "training/exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "elastic/error.hpp"
#include "training/fixed_point.hpp"

namespace elastic::detail {

using training::add_fixed;
using training::fixed_exponent;
using training::from_fixed;
using training::magnitude;
using training::set_to_nan;

namespace {

/// Elements that are worked on at a time: they stay in the cache, with their sums.
constexpr std::size_t kBlock = 2048;
/// The alignment of a tensor among those kept, in bytes.
constexpr std::size_t kKeptAlignment = 16;

template <typename Use>
void in_blocks(std::size_t count, Use use) {
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    use(begin, std::min(kBlock, count - begin));
  }
}

ConstTensorView part(DType dtype, const std::byte* first, std::size_t begin, std::size_t count) {
  return {first + begin * size_of(dtype), count, dtype, {}};
}

}  // namespace

void ExactSum::begin(training::Tensors tensors, std::size_t virtual_workers) {
  tensors_.assign(tensors.begin(), tensors.end());
  virtual_workers_ = virtual_workers;
  magnitudes_.assign(tensors.size(), 0);
  agreed_ = false;
  kept_count_ = 0;
  places_.assign(virtual_workers, kNowhere);
  kept_bytes_ = 0;
  offsets_.clear();
  std::size_t count = 0;
  for (const TensorView& tensor : tensors) {
    offsets_.push_back(kept_bytes_);
    kept_bytes_ += (tensor.bytes() + kKeptAlignment - 1) / kKeptAlignment * kKeptAlignment;
    count += tensor.count;
  }
  sums_.resize(count);
  aside_.clear();
}

void ExactSum::keep(std::size_t virtual_worker) {
  if (kept_count_ == kept_.size()) kept_.emplace_back();
  places_[virtual_worker] = kept_count_;
  Kept& kept = kept_[kept_count_++];
  kept.resize(kept_bytes_);
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    const TensorView& tensor = tensors_[at];
    std::byte* const copy = kept.data() + offsets_[at];
    double greatest = 0;
    in_blocks(tensor.count, [&](std::size_t begin, std::size_t count) {
      const auto* const first = static_cast<const std::byte*>(tensor.data);
      const ConstTensorView block = part(tensor.dtype, first, begin, count);
      greatest = std::max(greatest, magnitude(block));
      std::memcpy(copy + begin * size_of(tensor.dtype), block.data, block.bytes());
    });
    note_magnitude(at, greatest, virtual_worker);
  }
}

void ExactSum::note_magnitude(std::size_t tensor, double greatest, std::size_t virtual_worker) {
  if (agreed_ && greatest > magnitudes_[tensor]) {
    throw Error(ErrorCode::kInvalidArgument,
                "GlobalBatch: tensor " + std::to_string(tensor) + " of virtual worker " +
                    std::to_string(virtual_worker) +
                    " came out greater when it was computed again; reproducible sums need "
                    "gradients that are the same bits for the same part");
  }
  magnitudes_[tensor] = std::max(magnitudes_[tensor], greatest);
}

TensorView ExactSum::magnitudes() {
  return view(std::span(magnitudes_));
}

void ExactSum::sum(std::span<const std::size_t> virtual_workers) {
  std::vector<const Kept*> summands;
  for (const std::size_t one : virtual_workers) summands.push_back(&kept_[places_[one]]);
  std::span<std::int64_t> sums(sums_);
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    sum_tensor(at, summands, sums.first(tensors_[at].count));
    sums = sums.subspan(tensors_[at].count);
  }
}

void ExactSum::sum_tensor(std::size_t tensor, const std::vector<const Kept*>& summands,
                          std::span<std::int64_t> sums) const {
  const bool finite = std::isfinite(magnitudes_[tensor]);
  const int exponent = finite ? fixed_exponent(magnitudes_[tensor], virtual_workers_) : 0;
  in_blocks(sums.size(), [&](std::size_t begin, std::size_t count) {
    const auto block = sums.subspan(begin, count);
    std::ranges::fill(block, 0);
    for (const Kept* const kept : summands) {
      const std::byte* const first = kept->data() + offsets_[tensor];
      if (finite) add_fixed(part(tensors_[tensor].dtype, first, begin, count), exponent, block);
    }
  });
}

TensorView ExactSum::sums() {
  return view(std::span(sums_));
}

void ExactSum::put_aside() {
  add_aside();
  aside_ = sums_;
}

void ExactSum::add_aside() {
  for (std::size_t at = 0; at < aside_.size(); ++at) sums_[at] += aside_[at];
}

void ExactSum::finish() {
  add_aside();
  std::span<const std::int64_t> sums(sums_);
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    const TensorView& tensor = tensors_[at];
    if (std::isfinite(magnitudes_[at])) {
      from_fixed(sums, fixed_exponent(magnitudes_[at], virtual_workers_), tensor);
    } else {
      set_to_nan(tensor);
    }
    sums = sums.subspan(tensor.count);
  }
}

}  // namespace elastic::detail
