#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace elastic::testing {

/// The resources of another process, as the kernel reports them. A thread for repairs begins with
/// the first death that needs one, which few do, so these are counted apart.
struct Footprint {
  std::size_t descriptors = 0;
  std::size_t threads = 0;  ///< without `repairing`
  std::size_t repairing = 0;
  /// Whether there is nothing more than `before`. `before` may include descriptors and threads that
  /// were about to end.
  bool is_within(const Footprint& before) const {
    constexpr std::size_t kLanes = 2;
    return descriptors <= before.descriptors && threads <= before.threads && repairing <= kLanes;
  }
};
Footprint footprint(pid_t pid);

/// Its children that run a program of this name.
std::vector<pid_t> children_of(pid_t pid, const std::string& program);

/// Memory in use, in KiB.
std::size_t resident_kib(pid_t pid);

/// TCP ports that it listens on.
std::vector<std::uint16_t> listening_ports(pid_t pid);

/// Names of the abstract AF_UNIX sockets that it listens on.
std::vector<std::string> listening_names(pid_t pid);

/// TCP connections that it has to an IPv4 address.
std::size_t connections_to(pid_t pid, const std::string& address);

}  // namespace elastic::testing
