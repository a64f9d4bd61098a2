#include "collectives/kernels/reduce.hpp"
#include "collectives/kernels/scalar.hpp"

namespace elastic::kernels {
namespace {

template <typename T>
void divide_all(std::byte* data, std::size_t elements, std::uint32_t divisor) {
  auto* const at = reinterpret_cast<Loose<Stored<T>>*>(data);
  // A divisor may be greater than the element type can hold.
  using Computed = std::conditional_t<std::is_integral_v<Wide<T>>, std::int64_t, Wide<T>>;
  const auto by = static_cast<Computed>(divisor);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto quotient = static_cast<Computed>(widen<T>(at[i].value)) / by;
    at[i].value = narrow<T>(static_cast<Wide<T>>(quotient));
  }
}

}  // namespace

void divide(DType dtype, std::byte* data, std::size_t elements, std::uint32_t divisor) {
  switch (dtype) {
    case DType::kF16:
      return divide_all<float16>(data, elements, divisor);
    case DType::kBF16:
      return divide_all<bfloat16>(data, elements, divisor);
    case DType::kF32:
      return divide_all<float>(data, elements, divisor);
    case DType::kF64:
      return divide_all<double>(data, elements, divisor);
    case DType::kI8:
      return divide_all<std::int8_t>(data, elements, divisor);
    case DType::kU8:
      return divide_all<std::uint8_t>(data, elements, divisor);
    case DType::kI32:
      return divide_all<std::int32_t>(data, elements, divisor);
    case DType::kI64:
      return divide_all<std::int64_t>(data, elements, divisor);
  }
}

}  // namespace elastic::kernels
