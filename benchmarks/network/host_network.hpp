#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::network {

/// A simulated network: each host is a network namespace, and a bridge in a further namespace, with
/// an address of its own, joins them. The namespaces have no names, so the kernel removes them with
/// this object, even if the process is killed.
class HostNetwork {
 public:
  /// The reason why this machine cannot have one (it needs root and `ip`); empty if it can.
  static std::string missing();
  /// Makes a network of `hosts` hosts. kUnavailable says what is missing, or what failed.
  static Status make(int hosts, HostNetwork& network);

  /// The files of the hosts' namespaces, which this process and other processes of root can enter.
  std::vector<std::string> spaces() const;
  std::string space(int host) const;
  /// The file of the bridge's namespace.
  std::string bridge_space() const;

  /// The address of a host's eth0.
  static std::string address(int host);
  static constexpr const char* kBridgeAddress = "10.98.0.254";
  /// The name of a host's port at the bridge.
  static std::string port(int host);

  /// Brings up a host's eth0 and its port at the bridge, which may be joined by any device.
  Status plug_in(int host) const;

 private:
  UniqueFd bridge_;
  std::vector<UniqueFd> hosts_;
};

/// Moves the calling thread, and all threads that it starts afterwards, to the host with the
/// namespace file `space` (HostNetwork::spaces).
Status enter_host(const std::string& space);

/// Runs `function` in a thread on that host. Threads, sockets and processes that it makes belong to
/// that host.
Status run_on_host(const std::string& space, const std::function<Status()>& function);

/// Runs a command on that host. Its errors go to stderr.
Status command_on_host(const std::string& space, const std::string& command);

}  // namespace elastic::network
