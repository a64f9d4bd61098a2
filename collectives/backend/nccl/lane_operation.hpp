#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "collectives/backend/backend.hpp"
#include "collectives/transport/frame.hpp"

namespace elastic::collectives::nccl {

/// One operation of a lane. It takes several phases on the links, which all ranks number alike.
struct LaneOperation {
  std::uint64_t position = 0;
  const Call& call;
  std::uint8_t phase = transport::OpTag::kNormal;  ///< the next one

  std::uint8_t next_phase() {
    const auto following = static_cast<std::uint8_t>(phase + 1);
    return std::exchange(phase, std::max<std::uint8_t>(following, transport::OpTag::kLater));
  }
};

}  // namespace elastic::collectives::nccl
