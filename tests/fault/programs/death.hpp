#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace elastic::fault {

/// Kills this process with SIGKILL at a moment that is exact to some microseconds: so long after it
/// has entered a certain step, or after that step's call has returned.
///
/// Owned by the thread that makes the steps; a thread of its own spins up to the moment.
class Death {
 public:
  enum class From : std::uint8_t { kEntry, kReturn };

  /// `when` is empty for never, or "STEP:MICROSECONDS" or "STEP:return+MICROSECONDS".
  explicit Death(const std::string& when);
  Death(const Death&) = delete;
  Death& operator=(const Death&) = delete;
  /// Kills at the latest here: a machine too loaded for the moment does not let the victim live.
  ~Death();

  /// Just before the call of a step, and just after it.
  void enters(std::uint64_t step) { passes(step, From::kEntry); }
  void returns(std::uint64_t step) { passes(step, From::kReturn); }

 private:
  void passes(std::uint64_t step, From from);
  void watch();

  bool wanted_ = false;
  std::uint64_t step_ = 0;
  From from_ = From::kEntry;
  std::chrono::microseconds delay_{0};
  std::chrono::steady_clock::time_point lit_at_;  // written before lit_, read after
  std::atomic<bool> lit_{false};
  std::thread thread_;
};

}  // namespace elastic::fault
