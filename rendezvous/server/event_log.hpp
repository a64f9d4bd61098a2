#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::rendezvous {

/// The events of a job, as one JSON object per line, for programs. docs/status.md has the events
/// and their fields. A line is written at once, so that it can be followed while the job runs.
///
/// Owned by the server's thread.
class EventLog {
 public:
  using Value = std::variant<std::int64_t, double, std::string, std::vector<std::string>>;
  using Fields = std::vector<std::pair<std::string, Value>>;

  /// No log: `write` does nothing.
  EventLog() = default;
  /// Appends to the file, or makes it. kUnavailable names it.
  static Result<EventLog> open(const std::string& path);

  /// The event with the time of day in front. An error is logged once; the job goes on.
  void write(const std::string& event, const Fields& fields);

 private:
  std::string path_;
  UniqueFd file_;
  bool failed_ = false;
};

}  // namespace elastic::rendezvous
