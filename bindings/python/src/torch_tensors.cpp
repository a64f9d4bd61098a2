#include "torch_tensors.hpp"

#include <array>
#include <string>
#include <utility>

#include <elastic/error.hpp>

namespace elastic::python {

namespace {

[[noreturn]] void refuse(const char* call, const char* what, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, std::string(call) + ": " + subject(what) + " " + why);
}

/// PyTorch as it was found in sys.modules. Its objects live as long as the process.
struct Torch {
  nb::handle module;
  nb::handle tensor_type;
  nb::handle strided;
  std::array<std::pair<nb::handle, DType>, 13> dtypes;
};

nb::handle interned(const char* name) {
  return nb::handle(PyUnicode_InternFromString(name));
}

nb::object get(nb::handle object, nb::handle name) {
  return nb::steal(nb::detail::raise_if_null(PyObject_GetAttr(object.ptr(), name.ptr())));
}

nb::object call_method(nb::handle object, nb::handle name) {
  return nb::steal(
      nb::detail::raise_if_null(PyObject_CallMethodObjArgs(object.ptr(), name.ptr(), nullptr)));
}

/// Null before the program has imported PyTorch.
const Torch* torch() {
  static Torch found;
  if (found.module.is_valid()) return &found;
  const nb::handle modules(PyImport_GetModuleDict());
  PyObject* const module = PyDict_GetItemString(modules.ptr(), "torch");
  if (module == nullptr || !nb::hasattr(module, "Tensor") || !nb::hasattr(module, "float32")) {
    return nullptr;
  }
  const nb::handle torch_module(module);
  const auto of = [&](const char* name) -> nb::handle {
    return nb::hasattr(torch_module, name) ? nb::object(torch_module.attr(name)).release()
                                           : nb::handle();
  };
  found.dtypes = {{{of("float32"), DType::kF32},
                   {of("bfloat16"), DType::kBF16},
                   {of("float16"), DType::kF16},
                   {of("float64"), DType::kF64},
                   {of("int64"), DType::kI64},
                   {of("int32"), DType::kI32},
                   {of("uint8"), DType::kU8},
                   {of("int8"), DType::kI8},
                   {of("int16"), DType::kI16},
                   {of("bool"), DType::kBool},
                   {of("uint16"), DType::kU16},
                   {of("uint32"), DType::kU32},
                   {of("uint64"), DType::kU64}}};
  found.tensor_type = of("Tensor");
  found.strided = of("strided");
  found.module = torch_module;
  return &found;
}

DType dtype_of_tensor(nb::handle object, const char* call, const char* what) {
  static const nb::handle name = interned("dtype");
  const nb::object dtype = get(object, name);
  for (const auto& [known, value] : torch()->dtypes) {
    if (known.is(dtype)) return value;
  }
  refuse(call, what,
         "has elements of type " + text_of(dtype) +
             ", which elastic has not; convert it, for example by .float() or torch.view_as_real");
}

bool is_true(const nb::object& object) {
  return object.is(Py_True);
}

/// Writing into a tensor of the autograd graph would be unseen by autograd.
void check_no_gradient_is_recorded(nb::handle object, const char* call, const char* what) {
  static const nb::handle requires_grad = interned("requires_grad");
  if (!is_true(get(object, requires_grad))) return;
  if (!is_true(torch()->module.attr("is_grad_enabled")())) return;
  refuse(call, what,
         "requires a gradient, and autograd would not see the result that is written into it: call "
         "under torch.no_grad(), or pass its .detach() or .data");
}

}  // namespace

bool is_torch_tensor(nb::handle object) {
  const Torch* const found = torch();
  return found != nullptr && PyObject_IsInstance(object.ptr(), found->tensor_type.ptr()) == 1;
}

Tensor torch_tensor(nb::handle object, Access access, const char* call, const char* what) {
  static const nb::handle is_contiguous = interned("is_contiguous");
  static const nb::handle numel = interned("numel");
  static const nb::handle data_ptr = interned("data_ptr");
  static const nb::handle is_cuda = interned("is_cuda");
  static const nb::handle is_cpu = interned("is_cpu");
  static const nb::handle layout = interned("layout");
  static const nb::handle is_neg = interned("is_neg");

  if (!get(object, layout).is(torch()->strided)) {
    refuse(call, what,
           "is sparse; elastic takes dense tensors: pass its .to_dense(), or its rows to "
           "elastic.sparse_allreduce");
  }
  if (access == Access::kWrite) check_no_gradient_is_recorded(object, call, what);
  Tensor result;
  result.object = nb::borrow(object);
  result.view.dtype = dtype_of_tensor(object, call, what);
  if (!is_true(call_method(object, is_contiguous))) {
    refuse(call, what,
           "is not contiguous: its elements do not lie one after another in memory; pass its "
           ".contiguous()");
  }
  if (is_true(call_method(object, is_neg))) {  // as x.conj().imag is
    refuse(call, what, "is a view whose sign is not in its memory yet; pass its .resolve_neg()");
  }
  result.view.count = nb::cast<std::size_t>(call_method(object, numel));
  result.view.data =
      reinterpret_cast<void*>(nb::cast<std::uintptr_t>(call_method(object, data_ptr)));
  if (is_true(get(object, is_cpu))) return result;
  if (!is_true(get(object, is_cuda))) {
    refuse(call, what,
           "lies on the device " + text_of(object.attr("device")) +
               "; elastic takes tensors in host memory and on CUDA devices: pass its .cpu()");
  }
  const nb::object device = object.attr("device");
  result.view.device = {Device::Kind::kCuda, nb::cast<int>(device.attr("index"))};
  const nb::object stream = torch()->module.attr("cuda").attr("current_stream")(device);
  result.stream = {reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream.attr("cuda_stream")))};
  return result;
}

nb::object torch_alias(nb::handle object) {
  static const nb::handle detach = interned("detach");
  return call_method(object, detach);
}

nb::object new_torch_tensor(nb::handle like, std::size_t count) {
  return torch()->module.attr("empty")(count, nb::arg("dtype") = like.attr("dtype"));
}

}  // namespace elastic::python
