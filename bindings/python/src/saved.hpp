#pragma once

#include <span>

#include <nanobind/nanobind.h>

namespace elastic::python {

/// The bytes that an object of the library saves, for the State.
template <typename Object>
nanobind::bytes saved(const Object& object) {
  const auto bytes = object.save();
  return nanobind::bytes(bytes.data(), bytes.size());
}

/// Reverse of it.
template <typename Object>
void load(Object& object, const nanobind::bytes& bytes) {
  object.load({static_cast<const std::byte*>(bytes.data()), bytes.size()});
}

}  // namespace elastic::python
