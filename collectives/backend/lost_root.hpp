#pragma once

#include <cstdint>

#include "collectives/transport/frame.hpp"

namespace elastic::collectives {

/// The fingerprint of a rank in a group whose call has a root that is no member: it performs
/// nothing, and tells the others why. `detail`: that of its call.
transport::Fingerprint lost_root_call(std::uint32_t detail);
bool is_lost_root_call(const transport::Fingerprint& called);

}  // namespace elastic::collectives
