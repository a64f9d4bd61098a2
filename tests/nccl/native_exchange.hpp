#pragma once

#include <cstdint>
#include <memory>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/nccl/communicator/exchange.hpp"

namespace elastic::collectives::nccl {

/// Over `backend`, which nothing else may use meanwhile, from `position` on.
Exchange exchange_over(std::shared_ptr<Backend> backend, std::uint64_t position);

}  // namespace elastic::collectives::nccl
