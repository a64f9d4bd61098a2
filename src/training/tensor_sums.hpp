#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "elastic/types.hpp"

namespace elastic::training {

/// Arithmetic on the tensors of a step, which are the caller's, in host memory.
using Tensors = std::span<const TensorView>;

/// Throws Error(kInvalidArgument), with `caller` in front, unless all are in host memory. Where
/// `only_real`, whole numbers are refused, too.
void check_tensors(const std::string& caller, Tensors tensors, bool only_real);

void set_to_zero(Tensors tensors);

/// Makes `copy` the tensors' bytes, one after another.
void copy_to(std::vector<std::byte>& copy, Tensors tensors);

/// Adds to the tensors what `copy_to` copied of them before.
void add(std::span<const std::byte> copy, Tensors tensors);

/// Divides every element, all of them real, by `divisor`.
void divide(Tensors tensors, double divisor);

}  // namespace elastic::training
