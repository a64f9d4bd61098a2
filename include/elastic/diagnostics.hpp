#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "elastic/detail/export.hpp"

namespace elastic {

/// The measured capabilities of a view's links, and the resulting choice of allreduces. The same on
/// all ranks.
struct Tuning {
  /// The performance of links while every rank sends a message and receives one. Zeros if there is
  /// none.
  struct Link {
    double latency_us = 0;            ///< of a message of a few bytes, in microseconds
    double gigabytes_per_second = 0;  ///< powers of ten, each way, of each rank
  };
  /// The algorithm for tensors of up to a size.
  struct Choice {
    std::size_t up_to_bytes = 0;  ///< of the tensor; the last: however large
    /// "eager", "one_shot", "doubling", "two_rank_exchange", "two_shot", "hierarchical", "ring" or
    /// "circulant".
    std::string algorithm;
  };

  std::uint64_t generation = 0;  ///< of the view; 0: there was no operation yet
  Link inside_hosts;             ///< the slowest link of two ranks on one host
  Link between_hosts;            ///< the slowest link of two ranks on different hosts
  int flows_opened = 0;  ///< TCP connections of the link between hosts that has most; 0 on one host
  int flows_used = 0;    ///< flows of each link between hosts that carry data
  std::vector<Choice> allreduce;  ///< by ascending size
  std::size_t segment_bytes = 0;  ///< pieces of large tensors, except in a two-rank exchange
};

/// Where the time of a change of the view went, as one worker saw it. The moments are in the order
/// in which they come; from one to the next a phase takes its time:
///
///   noticed .. reported   freeze: what this worker was doing is interrupted and stops
///   reported .. decided   decide: the reports of the others, the server's decision, its journal
///   decided .. linked     link: with members that this worker has no link to yet
///   linked .. installed   install: the lanes are given the new view
///   installed .. resumed  replay: the interrupted operation, or the next one, is completed
///
/// If a member dies during the change, `noticed` keeps its first time; the later moments are those
/// of the last attempt.
struct ViewChange {
  /// A time of the monotonic clock, which all processes of a machine share.
  using Moment = std::chrono::steady_clock::time_point;

  std::uint64_t generation = 0;  ///< of the view that it led to; 0: there was no change yet
  std::string cause;             ///< for people: the workers that came and left
  /// An operation found a link broken, or the server asked to stop, whichever was first here. In a
  /// change at a step boundary: this worker reached it.
  Moment noticed;
  Moment reported;   ///< the server was told that nothing of the old view happens here any more
  Moment decided;    ///< the new view came, and was in the journal
  Moment linked;     ///< there was a link to every other member of it
  Moment installed;  ///< operations go on
  Moment resumed;    ///< the first of them was complete here; Moment{} until then
};

/// Where the time of a step, from one `commit` to the next, went on the thread that trains.
struct StepTime {
  /// The unit of all times here.
  using Duration = std::chrono::nanoseconds;

  Duration data{0};           ///< within `loading_data()`
  Duration compute{0};        ///< all the rest
  Duration communication{0};  ///< blocked in collectives and in Work::wait: for the others, too
  /// Blocked while the view changed, or at a commit while others came and went: includes what an
  /// interrupted collective took from there to its end, and the synchronisation of the state.
  Duration view_change{0};

  /// \returns the time of the whole step.
  Duration total() const { return data + compute + communication + view_change; }
  /// \returns the time of this worker's own work, for which others may have waited.
  Duration own() const { return data + compute; }
};

/// The steps that this worker has made in `run`.
struct StepTimes {
  std::uint64_t steps = 0;  ///< their number
  StepTime latest;          ///< the last one that was committed
  StepTime sum;             ///< of all of them

  /// The latest step in which the ranks told each other their times (Options::compare_steps).
  std::uint64_t compared_commit = 0;  ///< State::commits() of that step; 0: none yet
  std::vector<StepTime> by_rank;      ///< measured before the comparison, so communication is
                                      ///< incomplete
  int slowest = -1;                   ///< the rank with the longest `own` time
};

/// Marks its lifetime as `data`, if it lives on the thread that trains; otherwise it does nothing.
/// Blocking calls of the library within it count as usual. See `loading_data`.
class ELASTIC_API LoadingData {
 public:
  /// Begins the time.
  LoadingData();
  /// Ends it.
  ~LoadingData();
  LoadingData(const LoadingData&) = delete;
  LoadingData& operator=(const LoadingData&) = delete;

 private:
  int outer_;  // what the time belonged to before
};

/// Counts the time of a block as StepTime::data: for reading samples, or waiting for their reader.
///
///     {
///       const auto loading = elastic::loading_data();
///       batch = reader.next();
///     }
///
/// \returns the object whose lifetime counts.
[[nodiscard]] inline LoadingData loading_data() {
  return {};
}

}  // namespace elastic
