#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "elastic/types.hpp"

namespace elastic::kernels::device {

/// A tensor in device memory, at any address; `data` may be null where there are no elements.
struct TensorRange {
  void* data = nullptr;
  std::size_t count = 0;  ///< elements
};

/// Where elements go.
enum class Direction : std::uint8_t {
  kPack,   ///< from the tensors to the bucket
  kUnpack  ///< from the bucket to the tensors
};

/// The scaling of elements on the way: first the product with `factor`, then the quotient with
/// `divisor`, each rounded once.
struct Scale {
  double factor = 1;          ///< of floats only; rounded to what is computed in
  std::uint32_t divisor = 1;  ///< not 0; integers truncate towards zero, as `kernels::divide`'s do

  constexpr bool is_one() const { return factor == 1 && divisor == 1; }
};

/// Tensors and the bucket in which they lie one after another, without gaps, in this order.
struct PackRequest {
  Direction direction = Direction::kPack;
  DType tensor_dtype = DType::kF32;
  /// The tensors'; or kF16 or kBF16 where the tensors are kF32 or kF64.
  DType bucket_dtype = DType::kF32;
  std::span<const TensorRange> tensors;
  void* bucket = nullptr;  ///< device memory at any address
  Scale scale{};
};

/// The error in a request: types that do not go together, a scale that the type has not, or memory
/// that overlaps. Empty: nothing. A tensor may lie exactly where its elements are in the bucket, of
/// the same type; otherwise nothing that is written overlaps anything else, since nothing orders
/// the elements.
std::string invalid_request(const PackRequest& request);

/// A request, cut into chunks that blocks of threads move independently of each other: large
/// tensors into many of about the same size, small tensors into one each. A function of the
/// request alone; touches no device. Fit for any number of launches, as long as the memory stays.
struct PackPlan {
  Direction direction = Direction::kPack;
  DType tensor_dtype = DType::kF32;
  DType bucket_dtype = DType::kF32;
  Scale scale{};
  std::uint64_t bucket = 0;  ///< address
  /// Bytes of what is counted as an element below: those of the types, or 1 and 1 where bytes are
  /// only copied.
  std::uint32_t tensor_element_bytes = 1;
  std::uint32_t bucket_element_bytes = 1;
  std::uint32_t chunk_elements = 0;

  // A row for each tensor that has elements, in the bucket's order; and one more in `offsets` and
  // `first_chunks`, for the end. A tensor that is only copied, and already lies in its place, has
  // no chunks.
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint64_t> offsets;       ///< elements in front of it in the bucket
  std::vector<std::uint32_t> first_chunks;  ///< chunks in front of its own

  std::size_t rows() const { return addresses.size(); }
  std::uint32_t chunks() const { return first_chunks.back(); }
  std::uint64_t bucket_bytes() const { return offsets.back() * bucket_element_bytes; }
  /// Nothing but bytes to be copied.
  bool is_copy() const { return tensor_dtype == bucket_dtype && scale.is_one(); }
};

/// The request has nothing wrong with it. Throws std::length_error if it is more than one launch
/// can take, which is 2^31 chunks: 64 TiB, or so many tensors.
PackPlan pack_plan(const PackRequest& request);

}  // namespace elastic::kernels::device
