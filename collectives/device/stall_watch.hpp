#pragma once

#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace elastic::device {

/// Says which calls have waited long for a device. None is given up: what they wait for is the
/// program's own work, which may take hours, and copies that are queued cannot be called off. But a
/// stream that never comes to an end looks like a job that hangs, on all ranks.
///
/// Any thread. Its own (`elastic-watch`) is started with the first wait.
class StallWatch {
 public:
  using Warn = std::function<void(const std::string& message)>;

  /// Warns after each `warn_after` that a wait lasts: by the log, unless `warn` is given.
  explicit StallWatch(Milliseconds warn_after = Milliseconds(30000), Warn warn = nullptr);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  struct Entry {
    std::string what;
    TimePoint began;
    TimePoint warned;  // or began
  };
  using Entries = std::list<Entry>;

 public:
  /// A wait that lasts as long as this lives. `what`: the start of the message, such as "allreduce
  /// waits for CUDA device 0".
  class Wait {
   public:
    Wait(StallWatch& watch, std::string what) : watch_(watch), entry_(watch.add(std::move(what))) {}
    ~Wait() { watch_.remove(entry_); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    StallWatch& watch_;
    const Entries::iterator entry_;
  };

 private:
  Entries::iterator add(std::string what);
  void remove(Entries::iterator entry);
  void loop();
  std::list<std::string> overdue(TimePoint now) ELASTIC_REQUIRES(mutex_);

  const Milliseconds warn_after_;
  const Warn warn_;
  Mutex mutex_;
  ConditionVariable changed_;
  Entries waits_ ELASTIC_GUARDED_BY(mutex_);
  bool idle_ ELASTIC_GUARDED_BY(mutex_) = false;  // the thread sleeps until there is a wait
  bool ending_ ELASTIC_GUARDED_BY(mutex_) = false;
  std::thread thread_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::device
