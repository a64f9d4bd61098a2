#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "examples/digits/dataset.hpp"

namespace digits {

/// Draws and reads the samples of some epochs as one worker would, and does nothing with them: as
/// fast as the feed alone can be. Returns a line of JSON.
std::string measure_feed(const Dataset& data, std::uint64_t epochs, std::size_t batch,
                         std::uint64_t seed);

}  // namespace digits
