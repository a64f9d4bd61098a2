#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "runtime/calls_under_way.hpp"
#include "runtime/identity.hpp"
#include "runtime/membership_status.hpp"
#include "runtime/participation_effects.hpp"
#include "timeline/texts.hpp"
#include "timeline/tick_scale.hpp"

namespace elastic::runtime {

/// Creates the folder if it is missing, but not its parent. \returns kInvalidArgument if
/// files cannot be written to it.
Status make_flight_folder(const std::string& folder);

/// Writes the latest operations of this worker's lanes (timeline::FlightRecorder) to
/// flight.<worker>.json in the folder of Options::flight_recorder, in place of what it has written
/// there before, and says so in the log. A failure is a warning in the log.
///
/// Thread-safe.
class FlightLog {
 public:
  /// All of them outlive this. `folder`: Options::flight_recorder.
  FlightLog(const std::string& folder, const Identity& identity, const MembershipStatus& status,
            const Lanes& lanes, const CallsUnderWay& calls, const timeline::Texts& texts);
  ~FlightLog() { finish(); }
  FlightLog(const FlightLog&) = delete;
  FlightLog& operator=(const FlightLog&) = delete;

  /// Writes now. Nothing if there were no operations.
  void write(const std::string& reason);
  /// Writes on a thread of its own, unless that is writing: a slow disk holds up no heartbeat.
  void write_later(const std::string& reason);
  /// Waits for that thread. Call it while the lanes are there, and no other call comes.
  void finish();

 private:
  std::string text(const std::string& reason);
  std::string first_tensor() const;
  Status place(const std::string& text, std::string& path) const;
  Result<std::string> folder() const;

  const std::string given_folder_;
  const std::string runtime_folder_;  // XDG_RUNTIME_DIR
  const Identity& identity_;
  const MembershipStatus& status_;
  const Lanes& lanes_;
  const CallsUnderWay& calls_;
  const timeline::Texts& texts_;

  Mutex mutex_;
  timeline::TickScale scale_ ELASTIC_GUARDED_BY(mutex_);
  std::atomic<bool> writing_{false};
  std::thread thread_;  // the control thread's
};

}  // namespace elastic::runtime
