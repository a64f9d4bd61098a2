#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::bench {

/// A server in a process of its own, elastic-rendezvous, which dies with this process and with this
/// object.
class ServerProcess {
 public:
  ServerProcess() = default;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  /// Starts `command` and waits until it listens. kUnavailable: it does not.
  Status start(const std::vector<std::string>& command);
  /// SIGKILL, and waits for its end.
  void kill();

  /// "127.0.0.1:4711".
  const std::string& address() const { return address_; }
  /// The processors' time that it has used so far.
  Duration processor_time() const;

 private:
  pid_t pid_ = -1;
  std::string address_;
};

}  // namespace elastic::bench
