#pragma once

#include <cstddef>

namespace elastic {

/// Raises the number of descriptors that this process may have open, from the soft limit to the
/// hard one. \returns the limit in force then.
std::size_t raise_descriptor_limit();

}  // namespace elastic
