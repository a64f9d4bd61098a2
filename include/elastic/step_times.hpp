#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "elastic/export.hpp"

namespace elastic {

/// Where the time of a step, from one `commit` to the next, went on the thread that trains.
struct StepTime {
  using Duration = std::chrono::nanoseconds;

  Duration data{0};           ///< within `loading_data()`
  Duration compute{0};        ///< all the rest
  Duration communication{0};  ///< blocked in collectives and in Work::wait: for the others, too
  /// Blocked while the view changed, or at a commit while others came and went: includes what an
  /// interrupted collective took from there to its end, and the synchronisation of the state.
  Duration view_change{0};

  Duration total() const { return data + compute + communication + view_change; }
  /// The time of this worker's own work, for which others may have waited.
  Duration own() const { return data + compute; }
};

/// The steps that this worker has made in `run`.
struct StepTimes {
  std::uint64_t steps = 0;
  StepTime latest;  ///< the last one that was committed
  StepTime sum;     ///< of all of them

  /// The latest step in which the ranks told each other their times (Options::compare_steps).
  std::uint64_t compared_commit = 0;  ///< State::commits() of that step; 0: none yet
  std::vector<StepTime> by_rank;      ///< up to the comparing: communication is not complete
  int slowest = -1;                   ///< the rank with the longest `own` time
};

/// Marks the time of its life as `data`, where it lives on the thread that trains; elsewhere it
/// does nothing. Blocking calls of the library within it count as usual.
class ELASTIC_API LoadingData {
 public:
  LoadingData();
  ~LoadingData();
  LoadingData(const LoadingData&) = delete;
  LoadingData& operator=(const LoadingData&) = delete;

 private:
  int outer_;  // what the time belonged to before
};

/// For reading samples, or waiting for their reader:
///
///     {
///       const auto loading = elastic::loading_data();
///       batch = reader.next();
///     }
[[nodiscard]] inline LoadingData loading_data() {
  return {};
}

}  // namespace elastic
