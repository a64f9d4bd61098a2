#pragma once

#include <string>

#include "base/status.hpp"

namespace elastic::transport {

/// Sets the congestion control of a socket, or of all that a listener accepts. kInvalidArgument
/// where the kernel does not have it, or not for this user.
Status set_congestion_control(int socket, const std::string& name);

/// Whether a connected socket leads to an address of its own host, so that no network is on the
/// way.
bool stays_on_host(int socket);

/// For connections that stay on their host: every kernel has it, for every user, and it neither
/// paces nor probes where there is no network to find out about.
inline constexpr const char* kLocalCongestionControl = "reno";

}  // namespace elastic::transport
