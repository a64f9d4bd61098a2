#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "elastic/types.hpp"

namespace elastic::runtime {

/// Throws Error(kInvalidArgument) if input and output differ in dtype.
void check_same_type(const char* call, const ConstTensorView& input, const TensorView& output);

/// Copies as much of the result as the output has room for; `refuse_room` reports the rest after
/// the call.
void put(std::span<const std::byte> result, const TensorView& output);

/// Refuses an output that is too small, after the call: it is complete, and its result is lost
/// here.
[[noreturn]] void refuse_room(const char* call, const std::string& needs, std::size_t room);

}  // namespace elastic::runtime
