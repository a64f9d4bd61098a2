#include "fault/network_hosts.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <utility>

#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "benchmarks/network/link_cut.hpp"

namespace elastic::testing {

using network::HostNetwork;

namespace {

void expect(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

/// An Ethernet device in a namespace, whose wire is the descriptor.
UniqueFd new_tap(const std::string& space, const std::string& name) {
  UniqueFd result;
  expect(network::run_on_host(space, [&]() -> Status {
    UniqueFd tap(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    ifreq wanted{};
    wanted.ifr_flags = IFF_TAP | IFF_NO_PI;
    name.copy(wanted.ifr_name, IFNAMSIZ - 1);
    if (::ioctl(tap.get(), TUNSETIFF, &wanted) != 0) {
      return Status(Code::kUnavailable, std::string("/dev/net/tun: ") + std::strerror(errno));
    }
    result = std::move(tap);
    return {};
  }));
  return result;
}

}  // namespace

NetworkHosts::NetworkHosts(std::size_t hosts) {
  expect(HostNetwork::make(static_cast<int>(hosts), network_));
}

std::string NetworkHosts::address(std::size_t host) const {
  return HostNetwork::address(static_cast<int>(host));
}

std::vector<std::string> NetworkHosts::enter(std::size_t host) const {
  return {"nsenter", "--net=" + network_.space(static_cast<int>(host))};
}

void NetworkHosts::silence(std::size_t host) const {
  const std::string port = HostNetwork::port(static_cast<int>(host));
  expect(network::command_on_host(network_.bridge_space(), "ip link set " + port + " nomaster"));
}

void NetworkHosts::restore(std::size_t host) const {
  const std::string port = HostNetwork::port(static_cast<int>(host));
  expect(
      network::command_on_host(network_.bridge_space(), "ip link set " + port + " master bridge"));
}

void NetworkHosts::cut(std::size_t from, std::size_t to) const {
  network::LinkCut cut;
  expect(network::LinkCut::open(network_.space(static_cast<int>(from)), address(to), cut));
  cut.strike();
  expect(cut.confirm());
}

void NetworkHosts::mend(std::size_t from, std::size_t to) const {
  expect(network::command_on_host(network_.space(static_cast<int>(from)),
                                  "ip neigh del " + address(to) + " dev eth0"));
}

NetworkHosts::Cable NetworkHosts::splice(std::size_t host) const {
  const int number = static_cast<int>(host);
  const std::string space = network_.space(number);
  expect(network::command_on_host(space, "ip link del eth0"));
  Cable cable{new_tap(space, "eth0"), new_tap(network_.bridge_space(), HostNetwork::port(number))};
  expect(network_.plug_in(number));
  return cable;
}

void NetworkHosts::limit_download(std::size_t host, std::size_t bytes_per_second) const {
  expect(network::command_on_host(
      network_.bridge_space(), "tc qdisc replace dev " + HostNetwork::port(static_cast<int>(host)) +
                                   " root tbf rate " + std::to_string(bytes_per_second * 8) +
                                   "bit burst 32kb latency 400ms"));
}

}  // namespace elastic::testing
