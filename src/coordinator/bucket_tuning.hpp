#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"

namespace elastic::coordinator {

/// Finds the largest size of buckets with which a program's steps take the least time.
///
/// A step ends where a name that it has submitted comes again, so it has the computation in it,
/// too. The best known size and a candidate, a quarter or four times of it, take turns of several
/// steps. The candidate wins if it is faster in every turn and by more than kGain in all, so that
/// noise does not win; then the next one in that direction follows. After a candidate in each
/// direction has lost, the search is over. The size that it found is
/// remembered by the number of ranks.
///
/// Only the ranks' leader uses one: it makes the buckets for all of them.
///
/// Pure: no clocks, no I/O. The coordinator thread owns it.
class BucketTuning {
 public:
  explicit BucketTuning(std::uint64_t bucket_bytes);

  /// A view of `ranks` ranks begins. The step under way, and an unfinished comparison, are void.
  void begin_view(int ranks);

  /// A named allreduce of `bytes` is about to be submitted; `idle`: all that were submitted before
  /// it are complete. \returns the size for the buckets, if it changes here: before that allreduce.
  std::optional<std::uint64_t> on_submit(const std::string& name, std::uint64_t bytes, bool idle,
                                         TimePoint now);

  bool is_over() const { return !candidate_; }
  /// The comparisons since the last call, a line each, for people.
  std::vector<std::string> take_log();

  static constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  static constexpr std::size_t kTurns = 4;         ///< of each size in a comparison
  static constexpr std::size_t kUnusedSteps = 2;   ///< while the buckets of a turn are made
  static constexpr std::size_t kStepsOfATurn = 5;  ///< that are compared
  static constexpr double kGain = 0.03;

 private:
  struct Found {
    std::uint64_t best = 0;
    int direction = -1;   ///< of the candidates: to smaller or to larger buckets
    bool turned = false;  ///< that is the second direction
    bool over = false;
  };
  struct Turn {
    std::vector<double> best;  ///< seconds of the steps
    std::vector<double> candidate;
  };

  void begin_step(std::optional<TimePoint> since);
  void begin_comparison();
  void end_step(double seconds);
  void end_turn();
  void judge();
  void turn_around();
  std::optional<std::uint64_t> next_candidate() const;

  std::map<int, Found> by_ranks_;
  Found found_;                             // for the present number of ranks
  int ranks_ = 0;                           // 0: no view yet
  std::optional<std::uint64_t> candidate_;  // none: the search is over
  std::uint64_t in_use_;
  bool is_new_ = true;  // `in_use_` has not been returned yet

  // The comparison under way.
  std::vector<Turn> turns_;
  bool candidates_turn_ = false;
  std::size_t steps_ = 0;        // of the turn
  std::uint64_t bytes_ = 0;      // of a step; others are not compared
  std::size_t other_steps_ = 0;  // in a row, with other bytes

  // The step under way.
  std::unordered_set<std::string> names_;
  std::uint64_t step_bytes_ = 0;
  bool names_came_again_ = false;
  std::optional<TimePoint> since_;  // none: its begin was not seen

  std::vector<std::string> log_;
};

}  // namespace elastic::coordinator
