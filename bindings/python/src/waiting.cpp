#include "waiting.hpp"

#include "errors.hpp"

namespace elastic::python {

void check_signals() {
  call_python([] {
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  });
}

}  // namespace elastic::python
