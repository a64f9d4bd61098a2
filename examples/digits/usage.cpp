#include "examples/digits/usage.hpp"

#include <algorithm>

namespace digits {

void Usage::add(std::span<const float> step) {
  for (std::size_t at = 0; at < times.size(); ++at) times[at] += step[at];
}

void Usage::audit() {
  for (const float count : times) {
    if (count == 1) {
      ++used;
    } else if (count < 1) {
      ++missed;
    } else {
      ++twice;
    }
  }
  std::fill(times.begin(), times.end(), 0.0F);
  ++epochs;
}

}  // namespace digits
