#pragma once

#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace elastic::python {

/// \returns str(object). Lone surrogates, which UTF-8 has no bytes for, are escaped.
inline std::string text_of(nanobind::handle object) {
  namespace nb = nanobind;
  const auto text = nb::steal<nb::object>(PyObject_Str(object.ptr()));
  if (!text.is_valid()) nb::raise_python_error();
  const auto encoded =
      nb::steal<nb::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!encoded.is_valid()) nb::raise_python_error();
  return {static_cast<const char*>(encoded.data()), encoded.size()};
}

/// The text of an exception, as a traceback has it: one whose text cannot be had, has none.
inline std::string text_of_exception(nanobind::handle exception) {
  try {
    return text_of(exception);
  } catch (nanobind::python_error&) {
    return "<exception str() failed>";
  }
}

}  // namespace elastic::python
