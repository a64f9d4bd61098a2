#include "benchmarks/host_network.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include "benchmarks/child_run.hpp"

namespace elastic::bench {

namespace {

constexpr std::chrono::seconds kCommandDeadline{20};

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

/// Commands of `ip`, one in a line, in a namespace.
Status configure(const UniqueFd& space, const std::string& commands,
                 const std::filesystem::path& folder) {
  const auto batch = folder / "network";
  std::ofstream(batch) << commands;
  return run_on_host(file_of(space), [&] {
    return run_child({"/usr/bin/env", "ip", "-batch", batch.string()}, folder / "network-output",
                     kCommandDeadline);
  });
}

}  // namespace

Status HostNetwork::make(int hosts, const std::filesystem::path& folder, HostNetwork& network) {
  if (::geteuid() != 0) {
    return Status(Code::kUnavailable,
                  "cutting a link needs root, for network namespaces: run this with sudo");
  }
  network.bridge_ = new_space();
  if (!network.bridge_) {
    return Status(Code::kUnavailable, "network namespaces cannot be made here, though we are root");
  }
  std::string commands =
      "link set lo up\n"
      "link add bridge type bridge\n"
      "addr add " +
      std::string(kBridgeAddress) +
      "/24 dev bridge\n"
      "link set bridge up\n";
  for (int host = 0; host < hosts; ++host) {
    const UniqueFd& space = network.hosts_.emplace_back(new_space());
    if (!space) return Status(Code::kUnavailable, "no further network namespace can be made");
    const std::string port = "port" + std::to_string(host);
    commands.append("link add ").append(port).append(" type veth peer name eth0 netns ");
    commands.append(file_of(space))
        .append("\nlink set ")
        .append(port)
        .append(" master bridge up\n");
  }
  if (Status made = configure(network.bridge_, commands, folder); !made.ok()) return made;
  for (int host = 0; host < hosts; ++host) {
    const Status made = configure(
        network.hosts_[static_cast<std::size_t>(host)],
        "link set lo up\naddr add " + address(host) + "/24 dev eth0\nlink set eth0 up\n", folder);
    if (!made.ok()) return made;
  }
  return {};
}

std::vector<std::string> HostNetwork::spaces() const {
  std::vector<std::string> files;
  for (const UniqueFd& host : hosts_) files.push_back(file_of(host));
  return files;
}

std::string HostNetwork::address(int host) {
  return "10.98.0." + std::to_string(host + 1);
}

Status HostNetwork::run_at_bridge(const std::function<Status()>& function) const {
  return run_on_host(file_of(bridge_), function);
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

}  // namespace elastic::bench
