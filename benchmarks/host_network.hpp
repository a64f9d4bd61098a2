#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::bench {

/// Hosts on a network of their own: a network namespace each, joined by a bridge in a further one,
/// which has an address, too. Needs root and `ip`. The kernel ends it all with this object, or with
/// this process.
class HostNetwork {
 public:
  /// kUnavailable says what is missing. `folder` is for what `ip` is told and says.
  static Status make(int hosts, const std::filesystem::path& folder, HostNetwork& network);

  /// The files of the hosts' namespaces, for other processes of root's to enter.
  std::vector<std::string> spaces() const;
  static std::string address(int host);
  static constexpr const char* kBridgeAddress = "10.98.0.254";

  /// Runs `function` where the bridge is; processes that it starts are there, too.
  Status run_at_bridge(const std::function<Status()>& function) const;

 private:
  UniqueFd bridge_;
  std::vector<UniqueFd> hosts_;
};

/// The calling thread, and those that it starts from now on, are on that host: see
/// HostNetwork::spaces.
Status enter_host(const std::string& space);

/// Runs `function` in a thread on that host.
Status run_on_host(const std::string& space, const std::function<Status()>& function);

}  // namespace elastic::bench
