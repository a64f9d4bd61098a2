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

/// The text of a C++ error without the library's name, which the class has in Python, and with
/// Python's names of what it mentions.
std::string in_python(const std::string& text) {
  constexpr std::string_view kName = "elastic: ";
  std::string result = text.starts_with(kName) ? text.substr(kName.size()) : text;
  for (const std::string_view scope : {"elastic::", "State::", "Options::", "Work::"}) {
    for (auto at = result.find(scope); at != std::string::npos; at = result.find(scope, at)) {
      result.replace(at, scope.size(), std::string(scope.substr(0, scope.size() - 2)) + ".");
    }
  }
  return result;
}

void raise(const Error& error, const std::exception_ptr& thrown, nb::handle cause = {}) {
  const nb::object type = errors_module().attr("BY_CODE")[nb::int_(static_cast<int>(error.code()))];
  const nb::object raised = type(in_python(error.what()), error.peer(), error.generation());
  nb::setattr(raised, kThrown, nb::capsule(new std::exception_ptr(thrown), [](void* kept) noexcept {
                delete static_cast<std::exception_ptr*>(kept);
              }));
  if (cause.is_valid()) PyException_SetCause(raised.ptr(), nb::borrow(cause).release().ptr());
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
  const std::string text = text_of_exception(value);
  return text_of(value.type().attr("__name__")) + (text.empty() ? "" : ": " + text);
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
      const auto* const caused = dynamic_cast<const CausedError*>(&error);
      raise(error, thrown, caused != nullptr ? caused->cause() : nb::handle());
    } catch (nb::python_error& while_raising) {
      while_raising.restore();
    }
  }
}

}  // namespace

void throw_for_library(nb::python_error& error) {
  const nb::object value = nb::borrow(error.value());
  auto shared = std::make_shared<nb::python_error>(error);
  int number = 0;
  int peer = 0;
  std::uint64_t generation = 0;
  // A program's own subclass may lack them.
  if (nb::isinstance(value, errors_module().attr("Error")) &&
      nb::try_cast(nb::getattr(value, "code", nb::none()), number) &&
      nb::try_cast(nb::getattr(value, "peer", nb::int_(-1)), peer) &&
      nb::try_cast(nb::getattr(value, "generation", nb::int_(0)), generation)) {
    const auto code = static_cast<ErrorCode>(number);
    if (ends_run(code) && nb::hasattr(value, kThrown)) {
      const nb::object kept = value.attr(kThrown);
      std::rethrow_exception(*static_cast<std::exception_ptr*>(nb::cast<nb::capsule>(kept).data()));
    }
    throw PassedError(Error(code, text_of_exception(value), peer, generation), std::move(shared));
  }
  throw PythonFailure(last_line(value), std::move(shared));
}

void bind_errors(nb::module_& /*module*/) {
  nb::register_exception_translator(&translate);
}

}  // namespace elastic::python
