#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::network {

/// Cuts the link from one host of a HostNetwork to another: from `strike` on, all packets go to a
/// hardware address that does not exist, without an error on either host. `open` prepares
/// everything, so that `strike` is a single system call.
class LinkCut {
 public:
  /// `space`: the sender's namespace (HostNetwork::spaces). kUnavailable says what failed.
  static Status open(const std::string& space, const std::string& to_address, LinkCut& cut);

  void strike() noexcept;
  /// Whether `strike` worked, according to the kernel. Apart from `strike`, because it takes time.
  Status confirm();

 private:
  std::array<std::byte, 128> message_{};
  std::size_t bytes_ = 0;
  int error_ = 0;    ///< errno of `strike`
  UniqueFd socket_;  ///< to the kernel, in the sender's namespace
};

}  // namespace elastic::network
