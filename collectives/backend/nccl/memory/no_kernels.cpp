#include "collectives/backend/nccl/memory/bucket_mover.hpp"

namespace elastic::collectives::nccl {

std::unique_ptr<BucketMover> make_mover(device::CudaDevice& device) {
  return std::make_unique<CopyMover>(device);
}

}  // namespace elastic::collectives::nccl
