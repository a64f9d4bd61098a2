#pragma once

#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace elastic::python {

/// \returns str(object).
inline std::string text_of(nanobind::handle object) {
  const auto text = nanobind::steal<nanobind::object>(PyObject_Str(object.ptr()));
  if (!text.is_valid()) nanobind::raise_python_error();
  return nanobind::cast<std::string>(text);
}

}  // namespace elastic::python
