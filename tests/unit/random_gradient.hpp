#pragma once

#include <cmath>
#include <cstddef>
#include <rapidcheck.h>
#include <vector>

namespace elastic::testing {

/// Elements with few bits, so that some have equal magnitudes, of magnitudes far apart.
inline rc::Gen<float> gradient_element() {
  return rc::gen::apply(
      [](int whole, int exponent) { return std::ldexp(static_cast<float>(whole), exponent); },
      rc::gen::inRange(-2000, 2001), rc::gen::element(-40, -12, -9, -8));
}

inline rc::Gen<std::vector<float>> gradient(std::size_t count) {
  return rc::gen::container<std::vector<float>>(count, gradient_element());
}

}  // namespace elastic::testing
