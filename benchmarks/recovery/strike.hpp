#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::bench {

/// Injects a fault at a moment that is set shortly before, while another thread is in a call, and
/// writes the time of the fault to a file.
///
/// Owned by the thread that calls `arm`. A thread of its own spins until the moment.
class Strike {
 public:
  /// `blow` injects the fault; the spinning thread calls it. kUnavailable if the file exists or
  /// cannot be made.
  static Status open(const std::filesystem::path& file, std::function<void()> blow, Strike& strike);

  Strike() = default;
  Strike(const Strike&) = delete;
  Strike& operator=(const Strike&) = delete;
  ~Strike();

  /// Starts the thread and returns once it spins, so that no wake-up delays the fault.
  void get_ready();
  /// Sets the moment of the fault, in nanoseconds of `now_ns`.
  void arm(std::int64_t moment_ns) { moment_ns_.store(moment_ns, std::memory_order_release); }
  /// After `arm`: returns after the fault, if this process survives it.
  void wait_for_the_end() { thread_.join(); }

 private:
  void watch();

  UniqueFd file_;
  std::function<void()> blow_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<std::int64_t> moment_ns_{0};
  std::thread thread_;
};

}  // namespace elastic::bench
