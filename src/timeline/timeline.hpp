#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "elastic/diagnostics.hpp"
#include "timeline/event_ring.hpp"
#include "timeline/texts.hpp"
#include "timeline/trace_writer.hpp"

namespace elastic::timeline {

/// The timeline of a worker: what it does, in Chrome's trace event format. Its producers put events
/// into a ring, and a thread of low priority writes them. While it is off, a call costs one relaxed
/// load.
///
/// Thread-safe. Lives as long as the threads that record.
class Timeline {
 public:
  ~Timeline() { stop(); }

  /// Begins a file. kInvalidArgument if there is one already or it cannot be made.
  Status start(const TraceFile& file);
  /// Completes the file.
  void stop();
  /// \returns the path of the file; empty without one.
  std::string path() const;

  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

  /// Records an event, or counts it as dropped. Only while `on`.
  void record(const Event& event) noexcept {
    if (EventRing* const ring = ring_.load(std::memory_order_acquire)) ring->push(event);
  }

  /// The times of a named tensor. `submitted`: Coordinator::submit; `ordered`: the ranks have
  /// agreed to run it; `run` .. `complete`: its bucket's collective.
  struct TensorTimes {
    TimePoint submitted;
    TimePoint ordered;
    TimePoint run;
    TimePoint complete;
  };
  void record_tensor(std::string_view name, const TensorTimes& times, Event event);
  void record(const ViewChange& change);
  void record_member(int rank, int members, std::uint64_t generation);
  void record_commit(std::uint64_t commits);

  /// Names of tensors, shared with the flight recorders.
  Texts& texts() { return texts_; }
  const Texts& texts() const { return texts_; }

 private:
  Texts texts_;
  std::atomic<bool> on_{false};
  std::atomic<EventRing*> ring_{nullptr};

  mutable Mutex mutex_;
  /// Made by the first `start`, and kept for producers that come late.
  std::unique_ptr<EventRing> own_ring_ ELASTIC_GUARDED_BY(mutex_);
  std::unique_ptr<TraceWriter> writer_ ELASTIC_GUARDED_BY(mutex_);
  std::uint32_t rank_ ELASTIC_GUARDED_BY(mutex_) = 0;
  std::uint32_t members_ ELASTIC_GUARDED_BY(mutex_) = 0;  // 0: no member yet
  std::uint64_t generation_ ELASTIC_GUARDED_BY(mutex_) = 0;
};

}  // namespace elastic::timeline
