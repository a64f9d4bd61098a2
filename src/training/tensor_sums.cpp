#include "training/tensor_sums.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/tensor_bytes.hpp"
#include "elastic/error.hpp"
#include "training/elements.hpp"

namespace elastic::training {
namespace {

template <typename T>
T sum_of(T a, T b) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(a) + static_cast<float>(b));
  else if constexpr (std::is_integral_v<T>)  // wraps around; "or" of bools
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

}  // namespace

void check_tensors(const std::string& caller, Tensors tensors, bool only_real) {
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const TensorView& tensor = tensors[at];
    const std::string which = caller + ": tensor " + std::to_string(at) + " ";
    if (tensor.device.kind != Device::Kind::kHost) {
      throw Error(ErrorCode::kInvalidArgument, which + "is not in host memory, and has to be");
    }
    if (size_of(tensor.dtype) == 0 || !can_exist(tensor.count, size_of(tensor.dtype))) {
      throw Error(ErrorCode::kInvalidArgument,
                  which + "has " + std::to_string(tensor.count) +
                      " elements, more than any memory has; the count is wrong");
    }
    if (tensor.data == nullptr && tensor.count > 0) {
      throw Error(ErrorCode::kInvalidArgument, which + "lies at a null pointer");
    }
    if (only_real && !is_real_dtype(tensor.dtype)) {
      throw Error(ErrorCode::kInvalidArgument,
                  which + "has whole numbers; valid are f16, bf16, f32 and f64");
    }
  }
}

void set_to_zero(Tensors tensors) {
  for (const TensorView& tensor : tensors) {
    if (tensor.count > 0) std::memset(tensor.data, 0, tensor.bytes());
  }
}

void copy_to(std::vector<std::byte>& copy, Tensors tensors) {
  copy.clear();
  for (const TensorView& tensor : tensors) {
    const auto* const first = static_cast<const std::byte*>(tensor.data);
    copy.insert(copy.end(), first, first + tensor.bytes());
  }
}

void add(std::span<const std::byte> copy, Tensors tensors) {
  for (const TensorView& tensor : tensors) {
    with_elements(tensor, [&]<typename T>(std::span<T> elements) {
      for (std::size_t at = 0; at < elements.size(); ++at) {
        T other;
        std::memcpy(&other, copy.data() + at * sizeof(T), sizeof(T));
        elements[at] = sum_of(elements[at], other);
      }
    });
    copy = copy.subspan(tensor.bytes());
  }
}

void divide(Tensors tensors, double divisor) {
  for (const TensorView& tensor : tensors) {
    with_elements(tensor, [&]<typename T>(std::span<T> elements) {
      if constexpr (kIsReal<T>) {
        for (T& element : elements) element = rounded_to<T>(widened(element) / divisor);
      }
    });
  }
}

}  // namespace elastic::training
