#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "costs.hpp"
#include "scenario.hpp"

namespace elastic::simulation {

/// Why a job ended before its steps were done, where the design allows that.
enum class EarlyEnd : std::uint8_t {
  kStopped,     ///< on request
  kAllLeft,     ///< all members that were left chose to leave
  kTooFew,      ///< fewer than min_np members were left
  kTooFewWell,  ///< there were more, but some of them in trouble
  kStateLost,   ///< no member that was well had the state
  kNeverBegan,  ///< fewer than min_np workers came
  kUnlinkable,  ///< two members could not be linked before anything was done
  kNoMajority,  ///< the journal was lost, and no view had a majority of its members back
};
inline constexpr std::array<const char*, 8> kEarlyEnds{"stopped",      "all left",   "too few left",
                                                       "too few well", "state lost", "never began",
                                                       "unlinkable",   "no majority"};

/// Counts of the events of one run, or of many.
struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t large_runs = 0;          ///< that began with more than 64 workers
  std::uint64_t views = 0;               ///< decided, not counting the first of each job
  std::uint64_t operations = 0;          ///< completed, each on each worker
  std::uint64_t restarts = 0;            ///< of the server, whatever it died of
  std::uint64_t rejoins = 0;             ///< of workers that were evicted
  std::uint64_t timeouts = 0;            ///< after which a worker left, as a call of its had begun
  std::uint64_t late_calls = 0;          ///< that timed out before they began
  std::uint64_t named_mismatches = 0;    ///< returned by a worker
  std::uint64_t summed_again = 0;        ///< steps with tensors summed again, each on each worker
  std::uint64_t group_calls = 0;         ///< of groups, completed, each on each worker
  std::uint64_t joins = 0;               ///< ended, each on each worker
  std::uint64_t run_again = 0;           ///< of programs that left elastic::run and called it again
  std::uint64_t failed_jobs = 0;         ///< that had to end, with a reason
  std::uint64_t later_links = 0;         ///< asked for when an operation needed them, at each end
  std::uint64_t later_links_failed = 0;  ///< of these, not made in time
  std::array<std::uint64_t, kEarlyEnds.size()> early_ends{};
  FaultCounts faults{};
  Costs decisions;

  void count(Fault fault) { ++faults[static_cast<std::size_t>(fault)]; }
  Tally& operator+=(const Tally& other) {
    runs += other.runs;
    large_runs += other.large_runs;
    views += other.views;
    operations += other.operations;
    restarts += other.restarts;
    rejoins += other.rejoins;
    timeouts += other.timeouts;
    late_calls += other.late_calls;
    named_mismatches += other.named_mismatches;
    summed_again += other.summed_again;
    group_calls += other.group_calls;
    joins += other.joins;
    run_again += other.run_again;
    failed_jobs += other.failed_jobs;
    later_links += other.later_links;
    later_links_failed += other.later_links_failed;
    for (std::size_t i = 0; i < kFaults; ++i) faults[i] += other.faults[i];
    for (std::size_t i = 0; i < early_ends.size(); ++i) early_ends[i] += other.early_ends[i];
    decisions += other.decisions;
    return *this;
  }
};

}  // namespace elastic::simulation
