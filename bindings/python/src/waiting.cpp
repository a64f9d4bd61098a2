#include "waiting.hpp"

#include "errors.hpp"

namespace elastic::python {

namespace {

/// threading.get_ident() of Python's main thread.
unsigned long signals_thread() {
  return nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

}  // namespace

bool is_signals_thread() {
  static const unsigned long kThread = call_python(&signals_thread);
  return PyThread_get_thread_ident() == kThread;
}

void check_signals() {
  call_python([] {
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  });
}

}  // namespace elastic::python
