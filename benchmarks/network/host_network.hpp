#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::network {

/// Hosts on a network of their own: a network namespace each, joined by a bridge in a further one,
/// which has an address, too. The namespaces have no names: the kernel ends them, and all that is
/// in them, with this object, however this process ends.
class HostNetwork {
 public:
  /// Why there can be none here (it needs root and `ip`); empty where there can.
  static std::string missing();
  /// kUnavailable says what is missing, or what failed.
  static Status make(int hosts, HostNetwork& network);

  /// The files of the hosts' namespaces, for this process and others of root's to enter.
  std::vector<std::string> spaces() const;
  std::string space(int host) const;
  /// The same of the namespace with the bridge.
  std::string bridge_space() const;

  /// The address of a host's eth0.
  static std::string address(int host);
  static constexpr const char* kBridgeAddress = "10.98.0.254";
  /// The end at the bridge of a host's cable.
  static std::string port(int host);

  /// Brings up a host's eth0 and its port, with whatever these two are joined by.
  Status plug_in(int host) const;

 private:
  UniqueFd bridge_;
  std::vector<UniqueFd> hosts_;
};

/// The calling thread, and those that it starts from now on, are on that host: see
/// HostNetwork::spaces.
Status enter_host(const std::string& space);

/// Runs `function` in a thread on that host; threads, sockets and processes that it makes belong
/// there.
Status run_on_host(const std::string& space, const std::function<Status()>& function);

/// Runs a command on that host; what it says against it goes to stderr.
Status command_on_host(const std::string& space, const std::string& command);

}  // namespace elastic::network
