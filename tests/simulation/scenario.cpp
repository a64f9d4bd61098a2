#include "scenario.hpp"

#include <algorithm>

namespace elastic::simulation {

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::kKill:
      return "kills";
    case Fault::kPause:
      return "pauses";
    case Fault::kJoin:
      return "joins";
    case Fault::kLeave:
      return "leaves";
    case Fault::kRemoval:
      return "removals";
    case Fault::kStop:
      return "stops";
    case Fault::kSuspicion:
      return "false suspicions";
    case Fault::kLinkCut:
      return "link cuts";
    case Fault::kPartition:
      return "partitions";
    case Fault::kServerCrash:
      return "server crashes";
    case Fault::kLostAppend:
      return "lost appends";
    case Fault::kTornAppend:
      return "torn appends";
    case Fault::kUnacknowledged:
      return "unacknowledged appends";
    case Fault::kLostJournal:
      return "lost journals";
    case Fault::kTwoAtOnce:
      return "two at once";
    case Fault::kDamage:
      return "damaged frames";
    case Fault::kReset:
      return "resets";
    case Fault::kRackLost:
      return "racks lost";
    case Fault::kRackCut:
      return "racks cut off each other";
    case Fault::kParted:
      return "pairs parted for good";
  }
  return "?";
}

namespace {

// Shares of all runs, and sizes of the large ones.
constexpr unsigned kExceptionPercent = 10;
constexpr unsigned kUnitsPercent = 30;
constexpr unsigned kUnevenPercent = 15;
constexpr unsigned kGroupsPercent = 15;
constexpr unsigned kLargePercent = 2;
constexpr unsigned kVeryLargePercent = 4;  // of the large ones
constexpr unsigned kLargestPercent = 1;    // of the large ones
constexpr std::uint64_t kLeastLarge = 8;
constexpr std::uint64_t kMostlyLargest = 20;
constexpr std::uint64_t kLeastVeryLarge = 32;
constexpr std::uint64_t kMostOfVeryLarge = 64;
constexpr std::uint64_t kLeastRack = 8;
constexpr std::uint64_t kLargestRack = 32;
constexpr std::uint64_t kStepsOfLarge = 2;
constexpr std::uint64_t kStepsOfVeryLarge = 1;

}  // namespace

Scenario::Scenario(std::uint64_t seed_, Mutation mutation_, bool large)
    : seed(seed_), mutation(mutation_) {
  Chance chance(seed * 2 + 1);
  options.initial_np = static_cast<int>(1 + chance.below(5));
  options.min_np = chance.percent(70) ? 1 : static_cast<int>(1 + chance.below(3));
  options.min_np = std::min(options.min_np, options.initial_np);
  options.max_np = chance.percent(50) ? 0 : options.initial_np + static_cast<int>(chance.below(3));
  options.start_timeout = Milliseconds(2000);
  options.below_minimum_timeout = Milliseconds(3000);
  options.outage_window = Milliseconds(8000);
  options.adopt_any = chance.percent(30);
  steps = 2 + chance.below(12);
  uses_run = chance.percent(80);
  delay = Milliseconds(1 + static_cast<std::int64_t>(chance.below(8)));
  faults_until = Milliseconds(1 + static_cast<std::int64_t>(chance.below(600)));
  static constexpr std::size_t kBuckets[] = {0, 256, 4096, 1 << 20};
  bucket_bytes = kBuckets[chance.below(4)];
  segment_bytes = chance.percent(50) ? 512 : 16384;
  hosts = static_cast<unsigned>(1 + chance.below(3));
  measures = chance.percent(10);
  culprit = static_cast<Node>(chance.below(static_cast<std::uint64_t>(options.initial_np)));
  culprit_ends = chance.percent(70);
  const bool mismatches = chance.percent(25);
  const bool throws = chance.percent(kExceptionPercent);
  const std::uint64_t wrong_step = chance.below(steps);
  if (mismatches) mismatch_in = wrong_step;
  if (throws) exception_in = wrong_step;
  named_in_background = chance.percent(40);
  const auto plan = [&](Fault fault, unsigned percent, unsigned most) {
    if (!chance.percent(percent)) return;
    planned[static_cast<std::size_t>(fault)] = 1 + chance.below(most);
  };
  plan(Fault::kKill, 55, 4);
  plan(Fault::kPause, 25, 2);
  plan(Fault::kJoin, 50, 4);
  plan(Fault::kLeave, 20, 2);
  plan(Fault::kRemoval, 15, 2);
  plan(Fault::kStop, 5, 1);
  plan(Fault::kSuspicion, 30, 3);
  plan(Fault::kLinkCut, 20, 2);
  plan(Fault::kPartition, 15, 2);
  plan(Fault::kServerCrash, 25, 2);
  plan(Fault::kLostAppend, 12, 1);
  plan(Fault::kTornAppend, 12, 1);
  plan(Fault::kUnacknowledged, 12, 1);
  plan(Fault::kLostJournal, 8, 1);
  plan(Fault::kTwoAtOnce, 30, 2);
  plan(Fault::kDamage, 30, 4);
  plan(Fault::kReset, 40, 4);
  if (chance.percent(25)) {
    view_timeout = Milliseconds(100 + static_cast<std::int64_t>(chance.below(2000)));
    ends_after_timeout = chance.percent(25);
  }
  if (chance.percent(15)) {
    named_mismatch_in = chance.below(steps);
    named_mismatch = static_cast<Difference>(chance.below(3));
  }
  // A dropped handle does not tell of a timeout.
  const bool can_drop = view_timeout == kLongViewTimeout;
  drops_works = chance.percent(20) && can_drop;
  if (chance.percent(15)) {
    leaves_run_in = chance.below(steps);
    leaves_run_within_step = chance.percent(60) && can_drop;
  }
  // Small jobs with few links from the start show as much as large ones, and cost less.
  static constexpr int kAllLinked[] = {2, 5, 16, 16};
  all_linked = kAllLinked[chance.below(4)];
  plan(Fault::kParted, 2, 1);
  // A run with 64 workers costs as much as a hundred small ones, one with 256 as a thousand.
  const bool is_large = chance.percent(kLargePercent);
  const std::uint64_t share = chance.below(100);
  if (large || is_large) plan(Fault::kParted, 20, 1);
  if (large || (is_large && share < kLargestPercent + kVeryLargePercent)) {
    const std::uint64_t most = large || share < kLargestPercent ? kLargest : kMostOfVeryLarge;
    enlarge(static_cast<int>(kLeastVeryLarge + chance.below(most - kLeastVeryLarge + 1)));
    all_linked = 16;
    most_workers = kMostWorkers;
    rack = static_cast<Node>(kLeastRack + chance.below(kLargestRack - kLeastRack + 1));
    if (chance.percent(50))
      starts_within = Milliseconds(1 + static_cast<std::int64_t>(chance.below(300)));
    if (chance.percent(20)) options.min_np = options.initial_np / 2;
    plan(Fault::kRackLost, 60, 2);
    plan(Fault::kRackCut, 25, 1);
  } else if (is_large) {
    enlarge(static_cast<int>(kLeastLarge + chance.below(kMostlyLargest - kLeastLarge + 1)));
  }
  draw_calls(chance);
}

/// The calls that only some runs have.
void Scenario::draw_calls(Chance& chance) {
  // A step that has timed out in part cannot be made again.
  const bool can_be_units = view_timeout == kLongViewTimeout;
  steps_are_units = chance.percent(kUnitsPercent) && can_be_units;
  uneven = chance.percent(kUnevenPercent);
  calls_groups = chance.percent(kGroupsPercent);
}

void Scenario::enlarge(int workers) {
  if (options.max_np > 0) options.max_np += workers - options.initial_np;
  options.initial_np = workers;
  const bool is_very_large = workers > static_cast<int>(kMostOfVeryLarge);
  steps = 1 + steps % (is_very_large ? kStepsOfVeryLarge : kStepsOfLarge);
  for (auto* const step : {&mismatch_in, &exception_in, &named_mismatch_in, &leaves_run_in}) {
    if (*step) **step %= steps;
  }
}

}  // namespace elastic::simulation
