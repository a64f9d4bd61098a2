#include "tensors.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <elastic/error.hpp>

#include "torch_tensors.hpp"

namespace elastic::python {

namespace {

[[noreturn]] void refuse(const char* call, const char* what, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, std::string(call) + ": " + subject(what) + " " + why);
}

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return dtype.code == static_cast<std::uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  if (is(Code::Float, 32)) return DType::kF32;
  if (is(Code::Float, 64)) return DType::kF64;
  if (is(Code::Float, 16)) return DType::kF16;
  if (is(Code::Bfloat, 16)) return DType::kBF16;
  if (is(Code::Int, 8)) return DType::kI8;
  if (is(Code::Int, 16)) return DType::kI16;
  if (is(Code::Int, 32)) return DType::kI32;
  if (is(Code::Int, 64)) return DType::kI64;
  if (is(Code::UInt, 8)) return DType::kU8;
  if (is(Code::UInt, 16)) return DType::kU16;
  if (is(Code::UInt, 32)) return DType::kU32;
  if (is(Code::UInt, 64)) return DType::kU64;
  if (is(Code::Bool, 8)) return DType::kBool;
  return std::nullopt;
}

bool is_contiguous(const nb::ndarray<>& array) {
  if (array.size() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t at = array.ndim(); at-- > 0;) {
    if (array.shape(at) != 1 && array.stride(at) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(at));
  }
  return true;
}

std::string full_type_name(nb::handle object) {
  const nb::handle type = object.type();
  return text_of(type.attr("__module__")) + "." + text_of(type.attr("__qualname__"));
}

std::string attribute_text(nb::handle object, const char* name) {
  return nb::hasattr(object, name) ? text_of(object.attr(name)) : "";
}

bool is_numpy_array(nb::handle object) {
  static const nb::handle kType =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release();
  return object.type().is(kType);
}

/// The object for nanobind to export: one that has the buffer protocol alone may leave its strides
/// out, as ctypes' arrays do, which nanobind does not expect. A memoryview has them.
nb::object exporter(nb::handle object) {
  if (is_numpy_array(object) || nb::hasattr(object, "__dlpack__")) return nb::borrow(object);
  nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (view.is_valid()) return view;
  PyErr_Clear();
  return nb::borrow(object);
}

/// JAX exports its arrays as if they could be written, and shares their memory among them.
void refuse_array_of_jax(nb::handle object, const char* call, const char* what) {
  if (!full_type_name(object).starts_with("jax")) return;
  refuse(call, what,
         "is an array of JAX, which cannot be written: call elastic.jax.allreduce, or give a copy, "
         "numpy.array(...) of it");
}

/// NumPy's array of bfloat16 (of the package ml_dtypes), which exports no buffer: as 16 bits each.
std::optional<nb::object> as_bits_of_bfloat16(nb::handle object) {
  if (attribute_text(object, "dtype") != "bfloat16" || !nb::hasattr(object, "view")) return {};
  return object.attr("view")("uint16");
}

/// NumPy's name of an element type that a buffer or DLPack has. It has none for bfloat16.
const char* numpy_name(DType dtype) {
  static constexpr std::array kNames{"float16", "uint16", "float32", "float64", "int8",
                                     "uint8",   "int32",  "int64",   "uint32",  "uint64",
                                     "int16",   "uint16", "bool"};
  static_assert(kNames.size() == kDTypes.size());
  return kNames.at(static_cast<std::size_t>(dtype));
}

/// Why `object` could not be exported for `access`.
[[noreturn]] void explain(nb::handle object, Access access, const char* call, const char* what) {
  nb::ndarray<nb::ro> readable;
  if (access == Access::kWrite && nb::try_cast(exporter(object), readable, false)) {
    refuse(call, what,
           "is read-only, and the result is to be written into it: pass a writable array (for a "
           "number of NumPy, int() or float() of it)");
  }
  PyErr_Clear();
  const std::string dtype = attribute_text(object, "dtype");
  if (!dtype.empty()) {
    refuse(call, what,
           "has elements of type " + dtype +
               ", which elastic has not; convert it to one of float16, bfloat16, float32, float64, "
               "int8 to int64, uint8 to uint64 and bool, in the machine's byte order");
  }
  const char* const hint =
      object.is_none() ? " (a gradient that no backward() has computed is None)" : "";
  throw nb::type_error((std::string(call) + ": " + subject(what) + " is a " +
                        full_type_name(object) + hint +
                        "; give an array of NumPy, a tensor of PyTorch, or an object with the "
                        "buffer protocol or DLPack")
                           .c_str());
}

}  // namespace

std::string subject(const std::string& what) {
  const bool is_name = what == "out" || what.starts_with("tensors[") || what.starts_with("entry ");
  return is_name ? what : "the " + what;
}

Tensor tensor_of(nb::handle object, Access access, const char* call, const char* what) {
  if (is_torch_tensor(object)) return torch_tensor(object, access, call, what);
  Tensor result;
  std::optional<nb::object> bits;
  bool exported = false;
  if (access == Access::kWrite) {
    if (!is_numpy_array(object)) refuse_array_of_jax(object, call, what);
    exported = nb::try_cast(exporter(object), result.exported, false);
  } else {
    nb::ndarray<nb::ro> readable;
    exported = nb::try_cast(exporter(object), readable, false);
    if (exported) result.exported = nb::ndarray<>(readable);
  }
  if (!exported) {
    bits = as_bits_of_bfloat16(object);
    if (!bits) explain(object, access, call, what);
    result = tensor_of(*bits, access, call, what);
    result.view.dtype = DType::kBF16;
    result.object = nb::borrow(object);
    return result;
  }
  const nb::ndarray<>& array = result.exported;
  if (array.device_type() != nb::device::cpu::value) {
    refuse(call, what,
           "lies on a device; of those, elastic takes PyTorch's tensors on CUDA devices");
  }
  const auto dtype = dtype_of_dlpack(array.dtype());
  if (!dtype) explain(object, Access::kRead, call, what);
  if (!is_contiguous(array)) {
    refuse(
        call, what,
        std::string("is not contiguous: its elements do not lie one after another in memory; ") +
            (access == Access::kWrite
                 ? "the result is written into what you pass, so keep a contiguous copy, "
                   "numpy.ascontiguousarray(...) of it or a tensor's .contiguous(), and take the "
                   "result from that"
                 : "pass numpy.ascontiguousarray(...) of it, or a tensor's .contiguous()"));
  }
  result.view = {array.data(), array.size(), *dtype, {}};
  result.object = nb::borrow(object);
  return result;
}

Tensor kept(Tensor tensor) {
  if (is_torch_tensor(tensor.object)) tensor.object = torch_alias(tensor.object);
  return tensor;
}

std::vector<Tensor> tensors_of(nb::sequence objects, Access access, const char* call) {
  std::vector<Tensor> result;
  for (const nb::handle object : objects) {
    const std::string what = "tensors[" + std::to_string(result.size()) + "]";
    result.push_back(tensor_of(object, access, call, what.c_str()));
  }
  return result;
}

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.view);
  return result;
}

CudaStream stream_of(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.view.device.kind == Device::Kind::kCuda) return tensor.stream;
  }
  return {};
}

Tensor new_tensor(const Tensor& like, std::size_t count) {
  nb::object made;
  if (is_torch_tensor(like.object)) {
    made = new_torch_tensor(like.object, count);
  } else {
    const nb::object dtype = nb::hasattr(like.object, "dtype")
                                 ? nb::object(like.object.attr("dtype"))
                                 : nb::object(nb::str(numpy_name(like.view.dtype)));
    made = nb::module_::import_("numpy").attr("empty")(count, dtype);
  }
  return tensor_of(made, Access::kWrite, "elastic", "result");
}

}  // namespace elastic::python
