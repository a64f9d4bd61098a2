#pragma once

#include <array>
#include <string_view>

namespace elastic {

/// The backends that a job can have, in the order of their numbers on the wire: new ones come last.
inline constexpr std::array<std::string_view, 4> kBackendNames = {"native", "gloo", "mpi", "nccl"};

}  // namespace elastic
