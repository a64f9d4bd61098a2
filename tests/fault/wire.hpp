#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "base/event_fd.hpp"
#include "base/unique_fd.hpp"
#include "fault/network_hosts.hpp"

namespace elastic::testing {

/// A host's cable to the switch that runs through this process, and flips bits when told to: in the
/// data of large TCP segments, in a way that TCP's checksum does not notice, as memory and network
/// cards do it.
class Wire {
 public:
  /// `control_port` tells the connections with the rendezvous server from those with workers.
  Wire(const NetworkHosts& hosts, std::size_t host, std::uint16_t control_port);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// One bit in the next large segment between workers, or from the server.
  void flip_in_data() { flip_in_data_ = true; }
  void flip_in_control() { flip_in_control_ = true; }
  /// Whether what was asked for has been done.
  bool flipped() const { return !flip_in_data_ && !flip_in_control_; }

 private:
  void carry();
  void pass_on(const UniqueFd& from, const UniqueFd& to);
  void flip(std::span<std::uint8_t> frame);

  NetworkHosts::Cable cable_;
  EventFd end_;
  const std::uint16_t control_port_;
  std::atomic<bool> flip_in_data_{false};
  std::atomic<bool> flip_in_control_{false};
  std::thread thread_;
};

}  // namespace elastic::testing
