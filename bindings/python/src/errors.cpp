#include "errors.hpp"

#include <exception>
#include <string_view>
#include <utility>

namespace elastic::python {

namespace {

/// elastic.errors, whose table has the class of each code. Never released: exceptions may come
/// while the interpreter ends.
nb::handle errors_module() {
  static const nb::handle module = nb::module_::import_("elastic.errors").release();
  return module;
}

/// The attribute of a Python exception that keeps the C++ one.
constexpr const char* kThrown = "_thrown";

/// The texts of C++ errors begin with the library's name, which the class has in Python.
std::string without_name(const std::string& text) {
  constexpr std::string_view kName = "elastic: ";
  return text.starts_with(kName) ? text.substr(kName.size()) : text;
}

void raise(const Error& error, const std::exception_ptr& thrown) {
  const nb::object type = errors_module().attr("BY_CODE")[nb::int_(static_cast<int>(error.code()))];
  const nb::object raised = type(without_name(error.what()), error.peer(), error.generation());
  nb::setattr(raised, kThrown, nb::capsule(new std::exception_ptr(thrown), [](void* kept) noexcept {
                delete static_cast<std::exception_ptr*>(kept);
              }));
  PyErr_SetObject(type.ptr(), raised.ptr());
}

/// With these the library tells `run` that the training is over for this worker, and `run` knows
/// them by their own class.
bool ends_run(ErrorCode code) {
  return code == ErrorCode::kRemoved || code == ErrorCode::kStopped ||
         code == ErrorCode::kNotInitialized;
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
      raise(error, thrown);
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
    const auto code = static_cast<ErrorCode>(nb::cast<int>(value.attr("code")));
    if (ends_run(code) && nb::hasattr(value, kThrown)) {
      const nb::object kept = value.attr(kThrown);
      std::rethrow_exception(*static_cast<std::exception_ptr*>(nb::cast<nb::capsule>(kept).data()));
    }
    throw PassedError(Error(code, text_of(value), nb::cast<int>(value.attr("peer")),
                            nb::cast<std::uint64_t>(value.attr("generation"))),
                      std::move(shared));
  }
  throw PythonFailure(last_line(value), std::move(shared));
}

void bind_errors(nb::module_& /*module*/) {
  nb::register_exception_translator(&translate);
}

}  // namespace elastic::python
