#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "elastic/diagnostics.hpp"
#include "timeline/event.hpp"
#include "timeline/texts.hpp"
#include "timeline/tick_scale.hpp"

namespace elastic::timeline {

/// What the beginning of a file says, and what events lack.
struct TraceFacts {
  std::string job;
  std::string host;
  std::string label;  ///< the launcher's name of the worker
  std::uint64_t worker = 0;
  std::function<Tuning()> tuning;  ///< of the present view
};

/// Events as text in Chrome's trace event format (the "JSON Array Format", whose end may be
/// missing). Times are microseconds of CLOCK_MONOTONIC. One thread.
class TraceFormat {
 public:
  TraceFormat(TraceFacts facts, const Texts& texts);

  /// The process, its rows, and both clocks at this moment.
  std::string beginning();
  /// Compares ticks with the clock: before each round of `append`.
  void anchor() { scale_.anchor(); }
  void append(const Event& event, std::string& text);
  void append_dropped(std::uint64_t events, std::string& text);
  /// Closes the list.
  std::string end() const;

 private:
  /// `arguments` are the members of a JSON object.
  struct Slice {
    std::string name;
    int row = 0;
    std::int64_t began = 0;  ///< nanoseconds
    std::int64_t ended = 0;
    std::string arguments = {};
  };
  void append(const Slice& slice, std::string& text) const;
  void append_operation(const Event& event, std::string& text);
  void append_tensor(const Event& event, std::string& text);
  void append_view_change(const Event& event, std::string& text);
  void append_member(const Event& event, std::string& text) const;
  void append_commit(const Event& event, std::string& text);
  void append_metadata(std::string_view what, int row, const std::string& arguments,
                       std::string& text) const;
  void append_row(int row, std::string_view name, std::string& text) const;
  int row_of_tensor(const Event& event, std::string& text);
  std::string algorithm_of(const Event& event);
  std::int64_t after(int row, std::int64_t moment);

  const TraceFacts facts_;
  const Texts& texts_;
  const int process_;
  TickScale scale_;
  std::set<std::uint32_t> tensors_;         // that have a row
  std::map<int, std::int64_t> last_ended_;  // by row: rounding makes no slice begin before it
  std::int64_t last_commit_ = 0;            // nanoseconds; 0: none yet
  Tuning tuning_;                           // of the latest view with an operation
};

}  // namespace elastic::timeline
