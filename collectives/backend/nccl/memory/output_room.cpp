#include "collectives/backend/nccl/memory/output_room.hpp"

namespace elastic::collectives::nccl {

bool can_go_to_output(const DeviceTensor& tensor, std::size_t bytes) {
  if (bytes > tensor.room) return false;
  if (bytes == 0 || tensor.bytes() == 0) return true;
  return tensor.output + bytes <= tensor.input || tensor.input + tensor.bytes() <= tensor.output;
}

}  // namespace elastic::collectives::nccl
