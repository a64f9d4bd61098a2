#pragma once

#include <cstddef>

namespace elastic::testing {

/// How often this process has allocated memory with `new`.
std::size_t allocations();

}  // namespace elastic::testing
