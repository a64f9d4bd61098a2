#pragma once

#include <span>

namespace elastic {

/// The tensors of a gradient, in the order of the parameters. A single tensor is `{{values}}`.
using Gradient = std::span<const std::span<const float>>;

}  // namespace elastic
