#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace elastic::testing {

/// Hosts on a network of their own: a network namespace each, all on one switch, which is a bridge
/// in a further namespace. The namespaces have no names: the kernel ends them, and all that is in
/// them, with this object, however this process ends.
class NetworkHosts {
 public:
  /// Why there can be none here (it needs root and `ip`); empty where there can.
  static std::string missing();

  explicit NetworkHosts(std::size_t hosts);

  std::string address(std::size_t host) const;
  /// Put before a command, starts it on that host.
  std::vector<std::string> enter(std::size_t host) const;

  /// Unplugs a host from the switch: what it sends is lost, what is sent to it is lost, and nobody
  /// is told. `restore` plugs it in again.
  void silence(std::size_t host) const;
  void restore(std::size_t host) const;
  /// Loses all that one host sends to another, and nothing else.
  void cut(std::size_t from, std::size_t to) const;
  void mend(std::size_t from, std::size_t to) const;
  /// The two ends of a host's cable in this process: an Ethernet frame each is read and written.
  struct Cable {
    UniqueFd host_end;
    UniqueFd switch_end;
  };
  /// Cuts a host's cable, for this process to carry the frames.
  Cable splice(std::size_t host) const;
  /// Bytes per second that reach the host.
  void limit_download(std::size_t host, std::size_t bytes_per_second) const;

 private:
  void configure(std::size_t host) const;
  static std::string path(const UniqueFd& space);
  /// `ip ARGUMENTS` inside of a namespace.
  static void ip(const UniqueFd& space, const std::string& arguments);
  static void command_in(const UniqueFd& space, const std::string& command);

  UniqueFd switch_;
  std::vector<UniqueFd> hosts_;
};

}  // namespace elastic::testing
