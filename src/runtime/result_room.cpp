#include "runtime/result_room.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "elastic/error.hpp"

namespace elastic::runtime {

void check_same_type(const char* call, const ConstTensorView& input, const TensorView& output) {
  if (input.dtype == output.dtype) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(call) + ": input and output differ in dtype; they must be alike");
}

void put(std::span<const std::byte> result, const TensorView& output) {
  const std::size_t bytes = std::min(result.size(), output.bytes());
  if (bytes > 0 && result.data() != output.data) std::memcpy(output.data, result.data(), bytes);
}

std::span<std::byte> room_apart(const ConstTensorView& input, const TensorView& output) {
  const auto* const in = static_cast<const std::byte*>(input.data);
  auto* const out = static_cast<std::byte*>(output.data);
  const std::less_equal<const std::byte*> ends_before;
  const bool apart = ends_before(in + input.bytes(), out) || ends_before(out + output.bytes(), in);
  return apart ? std::span(out, output.bytes()) : std::span<std::byte>();
}

std::string lacks_room(const char* call, const std::string& needs, std::size_t room) {
  return std::string(call) + ": " + needs + ", and the output has room for " +
         std::to_string(room) +
         ": give all members one that is large enough, and have them call again; this call is "
         "done, and its result is lost here";
}

void refuse_room(const char* call, const std::string& needs, std::size_t room) {
  throw Error(ErrorCode::kInvalidArgument, lacks_room(call, needs, room));
}

std::string gathered_size(const GatheredBlocks& blocks) {
  return "the blocks of " + std::to_string(blocks.counts.size()) + " members have " +
         std::to_string(blocks.count) + " elements together";
}

std::string no_such_root(const char* call, const Root& root, const coordinator::Members& members) {
  return std::string(call) + ": root " + std::to_string(root.rank()) + " is no rank; there are " +
         std::to_string(members.size());
}

}  // namespace elastic::runtime
