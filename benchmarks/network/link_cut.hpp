#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::network {

/// Loses all that one host of a HostNetwork sends to another, from a moment on, and tells neither:
/// it is sent to a hardware address that does not exist. All is ready before that moment.
class LinkCut {
 public:
  /// `space` is the sender's: see HostNetwork::spaces. kUnavailable says what failed.
  static Status open(const std::string& space, const std::string& to_address, LinkCut& cut);

  void strike() noexcept;
  /// Whether that worked, according to the kernel: for afterwards, because asking takes time.
  Status confirm();

 private:
  std::array<std::byte, 128> message_{};
  std::size_t bytes_ = 0;
  int error_ = 0;    ///< errno of the strike
  UniqueFd socket_;  ///< to the kernel, in the sender's namespace
};

}  // namespace elastic::network
