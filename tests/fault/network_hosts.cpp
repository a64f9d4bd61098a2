#include "fault/network_hosts.hpp"

#include <chrono>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include "integration/job.hpp"

namespace elastic::testing {

namespace {

constexpr std::chrono::seconds kCommandDeadline{20};
/// Nobody's: where frames go that are to be lost.
constexpr const char* kNowhere = "02:00:00:00:ff:ff";

UniqueFd new_network_namespace() {
  UniqueFd result;
  std::thread([&result] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    result = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }).join();
  return result;
}

std::vector<std::string> split(const std::string& command) {
  std::istringstream words(command);
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  return result;
}

std::string port_of(std::size_t host) {
  return "port" + std::to_string(host);
}

}  // namespace

std::string NetworkHosts::missing() {
  if (::geteuid() != 0) return "needs root, for network namespaces";
  if (!new_network_namespace()) return "network namespaces cannot be made here, though we are root";
  for (const char* program : {"/usr/bin/nsenter", "/usr/sbin/ip", "/usr/sbin/tc"}) {
    if (::access(program, X_OK) != 0) return std::string("needs ") + program;
  }
  return {};
}

NetworkHosts::NetworkHosts(std::size_t hosts) : switch_(new_network_namespace()) {
  ip(switch_, "link add switch type bridge");
  ip(switch_, "link set switch up");
  for (std::size_t host = 0; host < hosts; ++host) {
    const UniqueFd& space = hosts_.emplace_back(new_network_namespace());
    ip(switch_, "link add " + port_of(host) + " type veth peer name eth0 netns " + path(space));
    ip(switch_, "link set " + port_of(host) + " master switch up");
    ip(space, "link set lo up");
    ip(space, "addr add " + address(host) + "/24 dev eth0");
    ip(space, "link set eth0 up");
  }
}

std::string NetworkHosts::address(std::size_t host) const {
  return "10.99.0." + std::to_string(host + 1);
}

std::string NetworkHosts::path(const UniqueFd& space) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(space.get());
}

std::vector<std::string> NetworkHosts::enter(std::size_t host) const {
  return {"nsenter", "--net=" + path(hosts_.at(host))};
}

void NetworkHosts::ip(const UniqueFd& space, const std::string& arguments) {
  command_in(space, "ip " + arguments);
}

void NetworkHosts::command_in(const UniqueFd& space, const std::string& command) {
  const ScratchFolder scratch;
  Job job(split("nsenter --net=" + path(space) + " " + command), scratch.path() / "output");
  if (job.wait(kCommandDeadline) == 0) return;
  throw std::runtime_error(command + ": " + job.output());
}

void NetworkHosts::silence(std::size_t host) const {
  ip(switch_, "link set " + port_of(host) + " nomaster");
}

void NetworkHosts::restore(std::size_t host) const {
  ip(switch_, "link set " + port_of(host) + " master switch");
}

void NetworkHosts::cut(std::size_t from, std::size_t to) const {
  ip(hosts_.at(from),
     "neigh replace " + address(to) + " lladdr " + kNowhere + " nud permanent dev eth0");
}

void NetworkHosts::mend(std::size_t from, std::size_t to) const {
  ip(hosts_.at(from), "neigh del " + address(to) + " dev eth0");
}

void NetworkHosts::limit_download(std::size_t host, std::size_t bytes_per_second) const {
  command_in(switch_, "tc qdisc replace dev " + port_of(host) + " root tbf rate " +
                          std::to_string(bytes_per_second * 8) + "bit burst 32kb latency 400ms");
}

}  // namespace elastic::testing
