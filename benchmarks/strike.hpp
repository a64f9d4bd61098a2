#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::bench {

/// Strikes at a moment set shortly before, while another thread is in a call, and leaves the time
/// of it in a file.
///
/// Owned by the thread that calls `arm`; a thread of its own waits for the moment.
class Strike {
 public:
  /// `blow` is what happens then, on the thread that waits for it. kUnavailable when the file
  /// cannot be made.
  static Status open(const std::filesystem::path& file, std::function<void()> blow, Strike& strike);

  Strike() = default;
  Strike(const Strike&) = delete;
  Strike& operator=(const Strike&) = delete;
  ~Strike();

  /// Starts the thread and returns once it spins: it is not to be woken up when the moment comes.
  void get_ready();
  /// In nanoseconds of `now_ns`.
  void arm(std::int64_t moment_ns) { moment_ns_.store(moment_ns, std::memory_order_release); }
  /// Once armed, returns when it has struck, where this process lives on.
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
