#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "errors.hpp"
#include "tensors.hpp"

namespace elastic::python {

/// The shape of a row: of a block without its first axis.
using Row = std::vector<std::size_t>;

/// Copies a result into a new array, of the kind of `like`. Requires the GIL.
inline Tensor new_tensor_of(const Tensor& like, std::span<const std::byte> bytes) {
  Tensor made = new_tensor(like, bytes.size() / size_of(like.view.dtype));
  if (!bytes.empty()) std::memcpy(made.view.data, bytes.data(), bytes.size());
  return made;
}

/// The stream of a call with an input and an output.
inline CudaStream stream_of(const Tensor& input, const Tensor& output) {
  return output.view.device.kind == Device::Kind::kCuda ? output.stream : input.stream;
}

/// The result that a blocking call gives to a TakeGathered or TakeScattered, as a new array.
/// `Shape`: the counts of gathered blocks, or the offset of a scattered one.
template <typename Shape>
class NewResult {
 public:
  explicit NewResult(const Tensor& like) : like_(like) {}

  /// Called by a thread without the GIL.
  void operator()(std::span<const std::byte> bytes, Shape shape) {
    values_ = call_python([&] { return new_tensor_of(like_, bytes); });
    shape_ = std::move(shape);
  }
  /// Without values where none were given, as on a member that is no root.
  nb::tuple with(const Contributors& contributors) {
    if (!values_) values_ = new_tensor_of(like_, {});
    return nb::make_tuple(values_->object, shape_, contributors);
  }

 private:
  const Tensor& like_;
  std::optional<Tensor> values_;
  Shape shape_{};
};

/// The same for an asynchronous call, which keeps the bytes until Python asks for them: a thread of
/// the library does not wait for the GIL, and may outlive the interpreter.
template <typename Shape>
class KeptResult {
 public:
  void operator()(std::span<const std::byte> bytes, Shape shape) {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.get(), bytes.data(), bytes.size());
    size_ = bytes.size();
    shape_ = std::move(shape);
  }
  /// Values of the kind of `like`, and the shape. Requires the GIL, and a complete operation.
  nb::tuple with(const Tensor& like) const {
    return nb::make_tuple(new_tensor_of(like, {bytes_.get(), size_}).object, shape_);
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
  Shape shape_{};
};

using NewBlocks = NewResult<std::vector<std::size_t>>;
using NewPart = NewResult<std::size_t>;
using KeptBlocks = KeptResult<std::vector<std::size_t>>;
using KeptPart = KeptResult<std::size_t>;

}  // namespace elastic::python
