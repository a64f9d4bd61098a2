#pragma once

#include "collectives/backend/nccl/nccl_backend.hpp"
#include "nccl/stand_in.hpp"

namespace elastic::collectives::nccl {

/// The stand-in for libnccl that the ranks of this process share.
const NcclStandIn* stand_in();

/// The services that a rank's backends share, on the stand-ins.
NcclServices services_for_a_rank();

}  // namespace elastic::collectives::nccl
