#include "runtime/dense_rows.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "collectives/kernels/reduce.hpp"

namespace elastic::runtime {

namespace {

using Element = std::array<std::byte, sizeof(std::int64_t)>;

template <typename T>
Element bits_of(T value) {
  Element element{};
  std::memcpy(element.data(), &value, sizeof(value));
  return element;
}

/// The bits of 1.
Element one(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return bits_of(std::uint16_t{0x3c00});
    case DType::kBF16:
      return bits_of(std::uint16_t{0x3f80});
    case DType::kF32:
      return bits_of(1.0F);
    case DType::kF64:
      return bits_of(1.0);
    default:
      break;
  }
  switch (size_of(dtype)) {
    case 1:
      return bits_of(std::uint8_t{1});
    case 2:
      return bits_of(std::uint16_t{1});
    case 4:
      return bits_of(std::uint32_t{1});
    default:
      return bits_of(std::uint64_t{1});
  }
}

std::size_t bytes_of(const SparseRowsView& rows) {
  return rows.rows == 0 ? 0 : rows.rows * (rows.width + 1) * size_of(rows.values.dtype);
}

}  // namespace

DenseRows::DenseRows(const SparseRowsView& rows)
    : dtype_(rows.values.dtype), width_(rows.width), rows_(rows.rows), bytes_(bytes_of(rows)) {
  const std::size_t element_bytes = size_of(dtype_);
  const std::size_t row_bytes = width_ * element_bytes;
  const Element mark = one(dtype_);
  const kernels::Function reduce = kernels::reduce(dtype_, ReduceOp::kSum);
  std::byte* const marks = bytes_.data() + rows_ * row_bytes;
  const auto* from = static_cast<const std::byte*>(rows.values.data);
  for (const std::int64_t index : rows.indices) {
    const auto row = static_cast<std::size_t>(index);
    std::byte* const sum = bytes_.data() + row * row_bytes;
    std::byte* const its_mark = marks + row * element_bytes;
    if (std::memcmp(its_mark, mark.data(), element_bytes) == 0) {
      reduce(sum, sum, from, width_);
    } else {
      std::memcpy(sum, from, row_bytes);
      std::memcpy(its_mark, mark.data(), element_bytes);
    }
    from += row_bytes;
  }
}

TensorView DenseRows::view() {
  return {bytes_.data(), rows_ * (width_ + 1), dtype_, {}};
}

SparseRows DenseRows::marked() const {
  const std::size_t element_bytes = size_of(dtype_);
  const std::size_t row_bytes = width_ * element_bytes;
  const std::byte* const marks = bytes_.data() + rows_ * row_bytes;
  const Element none{};
  SparseRows sums;
  for (std::size_t row = 0; row < rows_; ++row) {
    if (std::memcmp(marks + row * element_bytes, none.data(), element_bytes) != 0) {
      sums.indices.push_back(static_cast<std::int64_t>(row));
    }
  }
  sums.values.resize(sums.indices.size() * row_bytes);
  std::byte* into = sums.values.data();
  for (const std::int64_t index : sums.indices) {
    std::memcpy(into, bytes_.data() + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    into += row_bytes;
  }
  return sums;
}

}  // namespace elastic::runtime
