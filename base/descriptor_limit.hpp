#pragma once

#include <cstddef>

namespace elastic {

/// Raises the number of descriptors that this process may have open, from the soft limit to the
/// hard one. \returns the limit in force then.
std::size_t raise_descriptor_limit();

/// Gives a child of `fork` the soft limit that this process had before it was raised: programs may
/// close all descriptors that they could have, or use select(). Async-signal-safe.
void restore_descriptor_limit() noexcept;

}  // namespace elastic
