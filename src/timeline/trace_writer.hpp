#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "elastic/diagnostics.hpp"
#include "timeline/event_ring.hpp"
#include "timeline/texts.hpp"
#include "timeline/trace_format.hpp"

namespace elastic::timeline {

/// The file of a timeline.
struct TraceFile {
  std::string path;
  TraceFacts facts;
};

/// \returns kInvalidArgument if `path`, as a user gives it, names no file.
Status check_timeline_path(const std::string& path);

/// \returns "folder/trace.<worker>.json" for "folder/trace.json": workers that share a path write
/// to different files, and so does one that takes the rank of a dead one.
std::string path_of_worker(const std::string& path, std::uint64_t worker);

/// The thread that writes the events of a ring to a file. It has the lowest priority, because
/// trainers may use all cores: then events are dropped, and no collective is slower.
class TraceWriter {
 public:
  /// Makes the file, in place of an old one, and starts the thread. kInvalidArgument names the file
  /// that cannot be made, or that is neither a regular file nor a character device.
  static Result<std::unique_ptr<TraceWriter>> create(const TraceFile& file, EventRing& ring,
                                                     const Texts& texts);
  /// Writes what the ring has, and completes the file.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  const std::string& path() const { return file_.path; }

 private:
  TraceWriter(TraceFile file, UniqueFd fd, EventRing& ring, const Texts& texts);
  void loop();
  void write_events(std::string& text);
  void write(const std::string& text);

  const TraceFile file_;
  UniqueFd fd_;  // closed after a failed write
  EventRing& ring_;
  TraceFormat format_;

  Mutex mutex_;
  ConditionVariable ended_;
  bool end_ ELASTIC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace elastic::timeline
