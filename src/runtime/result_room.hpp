#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "coordinator/lane_view.hpp"
#include "elastic/results.hpp"
#include "elastic/root.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

/// Throws Error(kInvalidArgument) if input and output differ in dtype.
void check_same_type(const char* call, const ConstTensorView& input, const TensorView& output);

/// Copies as much of the result as the output has room for; `refuse_room` reports the rest after
/// the call.
void put(std::span<const std::byte> result, const TensorView& output);

/// The memory of `output`, for a result that is written while the input is still read; empty if
/// they overlap.
std::span<std::byte> room_apart(const ConstTensorView& input, const TensorView& output);

/// The error for an output that is too small, after the call: it is complete, and its result is
/// lost here. `refuse_room` throws it.
std::string lacks_room(const char* call, const std::string& needs, std::size_t room);
[[noreturn]] void refuse_room(const char* call, const std::string& needs, std::size_t room);

/// "the blocks of 3 members have 12 elements together"
std::string gathered_size(const GatheredBlocks& blocks);

/// The error for a root that is no rank.
std::string no_such_root(const char* call, const Root& root, const coordinator::Members& members);

}  // namespace elastic::runtime
