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
  Wire(const NetworkHosts& hosts, std::size_t host);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// One bit in each of the next segments.
  void flip_in_next(int segments) { to_flip_ += segments; }
  /// Segments that are still to come of those.
  int still_to_flip() const { return to_flip_; }

 private:
  void carry();
  void pass_on(const UniqueFd& from, const UniqueFd& to);
  void flip(std::span<std::uint8_t> frame);

  NetworkHosts::Cable cable_;
  EventFd end_;
  std::atomic<int> to_flip_{0};
  std::thread thread_;
};

}  // namespace elastic::testing
