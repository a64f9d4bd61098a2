#pragma once

#include <cxxabi.h>
#include <memory>
#include <stdexcept>
#include <string>

#include <elastic/error.hpp>
#include <nanobind/nanobind.h>

#include "interpreter_lock.hpp"
#include "text.hpp"

namespace elastic::python {

namespace nb = nanobind;

/// A Python exception on its way through the C++ library, which sees its text and nothing more.
class PythonFailure : public std::runtime_error {
 public:
  PythonFailure(const std::string& text, std::shared_ptr<nb::python_error> error)
      : std::runtime_error(text), error_(std::move(error)) {}
  const nb::python_error& error() const noexcept { return *error_; }

 private:
  std::shared_ptr<nb::python_error> error_;  // shared: exceptions are copied
};

/// An elastic.Error that Python code has raised, or passed on, inside a call of the library. To the
/// library it is its own Error, so that it acts on the code; Python gets its own object back.
class PassedError : public Error {
 public:
  PassedError(const Error& error, std::shared_ptr<nb::python_error> raised)
      : Error(error), raised_(std::move(raised)) {}
  const nb::python_error& error() const noexcept { return *raised_; }

 private:
  std::shared_ptr<nb::python_error> raised_;
};

/// An error of the library that an exception of Python has caused, which becomes its `__cause__`.
class CausedError : public Error {
 public:
  CausedError(const Error& error, std::shared_ptr<nb::python_error> cause)
      : Error(error), cause_(std::move(cause)) {}
  nb::handle cause() const { return cause_->value(); }

 private:
  std::shared_ptr<nb::python_error> cause_;
};

/// Throws the Python exception that is being handled as a PythonFailure or a PassedError. For
/// functions of Python that the library calls. Requires the GIL.
[[noreturn]] void throw_for_library(nb::python_error& error);

/// Calls Python code for the library, whose exceptions the library is to see. Acquires the GIL.
template <typename Function>
auto call_python(Function&& function) {
  const HeldLock lock;
  try {
    return std::forward<Function>(function)();
  } catch (nb::python_error& error) {
    throw_for_library(error);
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {
    sleep_until_exit();  // a daemon thread in Python code as the interpreter ends
#endif
  }
}

/// Makes the exceptions of this module those of elastic/errors.py.
void bind_errors(nb::module_& module);

}  // namespace elastic::python
