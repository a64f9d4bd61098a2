#include "errors.hpp"

#include <utility>

namespace elastic::python {

namespace {

/// elastic.errors, whose table has the class of each code. Never released: exceptions may come
/// while the interpreter ends.
nb::handle errors_module() {
  static const nb::handle module = nb::module_::import_("elastic.errors").release();
  return module;
}

void raise(const Error& error) {
  const nb::object type = errors_module().attr("BY_CODE")[nb::int_(static_cast<int>(error.code()))];
  const nb::object raised = type(error.what(), error.peer(), error.generation());
  PyErr_SetObject(type.ptr(), raised.ptr());
}

/// As the last line of a traceback has it: "ValueError: what it says".
std::string last_line(nb::handle value) {
  return text_of(value.type().attr("__name__")) + ": " + text_of(value);
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PassedError& passed) {
    nb::python_error(passed.error()).restore();
  } catch (const PythonFailure& failure) {
    nb::python_error(failure.error()).restore();
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (nb::python_error& while_raising) {
      while_raising.restore();
    }
  }
}

}  // namespace

void throw_for_library(nb::python_error& error) {
  const nb::object value = nb::borrow(error.value());
  auto shared = std::make_shared<nb::python_error>(error);
  if (nb::isinstance(value, errors_module().attr("Error"))) {
    throw PassedError(
        Error(static_cast<ErrorCode>(nb::cast<int>(value.attr("code"))), text_of(value),
              nb::cast<int>(value.attr("peer")), nb::cast<std::uint64_t>(value.attr("generation"))),
        std::move(shared));
  }
  throw PythonFailure(last_line(value), std::move(shared));
}

void bind_errors(nb::module_& /*module*/) {
  nb::register_exception_translator(&translate);
}

}  // namespace elastic::python
