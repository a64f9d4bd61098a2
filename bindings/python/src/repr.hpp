#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace elastic::python {

/// Gives a class of results a `__repr__`: its name, and the values of these attributes.
template <typename... Class>
void define_repr(nanobind::class_<Class...>& type, std::vector<const char*> attributes) {
  namespace nb = nanobind;
  type.def(
      "__repr__",
      [attributes = std::move(attributes)](nb::handle self) {
        std::string text;
        for (const char* const name : attributes) {
          text += text.empty() ? "" : ", ";
          text += std::string(name) + "=" + nb::cast<std::string>(nb::repr(self.attr(name)));
        }
        return nb::cast<std::string>(self.type().attr("__qualname__")) + "(" + text + ")";
      },
      nb::sig("def __repr__(self) -> str"));
}

}  // namespace elastic::python
