#include "fault/network_hosts.hpp"

#include <chrono>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

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

/// An Ethernet device in a namespace, whose wire is the descriptor.
UniqueFd new_tap(const UniqueFd& space, const std::string& name) {
  UniqueFd result;
  std::thread([&] {
    if (::setns(space.get(), CLONE_NEWNET) != 0) return;
    UniqueFd tap(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    ifreq wanted{};
    wanted.ifr_flags = IFF_TAP | IFF_NO_PI;
    name.copy(wanted.ifr_name, IFNAMSIZ - 1);
    if (::ioctl(tap.get(), TUNSETIFF, &wanted) == 0) result = std::move(tap);
  }).join();
  if (!result) throw std::runtime_error("cannot make a network device with /dev/net/tun");
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
    ip(space, "link set lo up");
    configure(host);
  }
}

void NetworkHosts::configure(std::size_t host) const {
  ip(switch_, "link set " + port_of(host) + " master switch up");
  ip(hosts_.at(host), "addr add " + address(host) + "/24 dev eth0");
  ip(hosts_.at(host), "link set eth0 up");
}

NetworkHosts::Cable NetworkHosts::splice(std::size_t host) const {
  ip(hosts_.at(host), "link del eth0");
  Cable cable{new_tap(hosts_.at(host), "eth0"), new_tap(switch_, port_of(host))};
  configure(host);
  return cable;
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
