#include "benchmarks/network/host_network.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace elastic::network {

namespace {

UniqueFd new_space() {
  UniqueFd made;
  std::thread([&made] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    made = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }).join();
  return made;
}

std::string file_of(const UniqueFd& space) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(space.get());
}

/// Runs `ip COMMAND` for each of the commands.
Status ip(const std::string& space, std::initializer_list<std::string> commands) {
  for (const std::string& command : commands) {
    if (Status status = command_on_host(space, "ip " + command); !status.ok()) return status;
  }
  return {};
}

}  // namespace

std::string HostNetwork::missing() {
  if (::geteuid() != 0) return "needs root, for network namespaces";
  if (!new_space()) return "network namespaces cannot be made here, though we are root";
  if (std::system("command -v ip >/dev/null") != 0) return "needs ip, which iproute2 has";
  return {};
}

Status HostNetwork::make(int hosts, HostNetwork& network) {
  if (const std::string why = missing(); !why.empty()) return Status(Code::kUnavailable, why);
  network.bridge_ = new_space();
  const std::string bridge = network.bridge_space();
  Status status = ip(
      bridge, {"link set lo up", "link add bridge type bridge",
               "addr add " + std::string(kBridgeAddress) + "/24 dev bridge", "link set bridge up"});
  for (int host = 0; host < hosts && status.ok(); ++host) {
    const std::string space = file_of(network.hosts_.emplace_back(new_space()));
    status = ip(bridge, {"link add " + port(host) + " type veth peer name eth0 netns " + space});
    if (status.ok()) status = ip(space, {"link set lo up"});
    if (status.ok()) status = network.plug_in(host);
  }
  return status;
}

Status HostNetwork::plug_in(int host) const {
  Status status = ip(bridge_space(), {"link set " + port(host) + " master bridge up"});
  if (!status.ok()) return status;
  return ip(space(host), {"addr add " + address(host) + "/24 dev eth0", "link set eth0 up"});
}

std::vector<std::string> HostNetwork::spaces() const {
  std::vector<std::string> files;
  for (const UniqueFd& host : hosts_) files.push_back(file_of(host));
  return files;
}

std::string HostNetwork::space(int host) const {
  return file_of(hosts_.at(static_cast<std::size_t>(host)));
}

std::string HostNetwork::bridge_space() const {
  return file_of(bridge_);
}

std::string HostNetwork::address(int host) {
  return "10.98.0." + std::to_string(host + 1);
}

std::string HostNetwork::port(int host) {
  return "port" + std::to_string(host);
}

Status enter_host(const std::string& space) {
  const UniqueFd file(::open(space.c_str(), O_RDONLY | O_CLOEXEC));
  if (file && ::setns(file.get(), CLONE_NEWNET) == 0) return {};
  return Status(Code::kUnavailable,
                "cannot enter the network namespace " + space + ": " + std::strerror(errno));
}

Status run_on_host(const std::string& space, const std::function<Status()>& function) {
  Status status;
  std::thread([&] {
    status = enter_host(space);
    if (status.ok()) status = function();
  }).join();
  return status;
}

Status command_on_host(const std::string& space, const std::string& command) {
  return run_on_host(space, [&] {
    return std::system(command.c_str()) == 0 ? Status()
                                             : Status(Code::kUnavailable, "failed: " + command);
  });
}

}  // namespace elastic::network
