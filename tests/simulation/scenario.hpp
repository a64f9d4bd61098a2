#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "chance.hpp"
#include "mutation.hpp"
#include "nodes.hpp"
#include "rendezvous/membership/membership.hpp"

namespace elastic::simulation {

inline constexpr std::size_t kLanes = 2;
inline constexpr unsigned kOperationsPerStep = 2;  ///< in each lane
// The calls of a step are numbered; unnamed ones begin at zero.
inline constexpr std::uint64_t kFirstNamed = 100;
inline constexpr std::uint64_t kFirstLeft = 200;   ///< before the program leaves elastic::run
inline constexpr unsigned kOperationsPerSync = 3;  ///< of lane 0, to bring joiners up to date

/// How long a call waits for a view, in most runs: longer than any fault lasts.
inline constexpr Milliseconds kLongViewTimeout{60000};

/// The faults and the events of a job.
enum class Fault : std::uint8_t {
  kKill,            ///< a worker dies
  kPause,           ///< a worker is paused for a while
  kJoin,            ///< a worker comes
  kLeave,           ///< a worker leaves before the job's end
  kRemoval,         ///< the administrator removes one
  kStop,            ///< the administrator stops the job
  kSuspicion,       ///< a worker says that its link to another failed, which it did not
  kLinkCut,         ///< two workers do not reach each other for a while, or one of them the other
  kPartition,       ///< some workers do not reach the others and the server, or are not reached
  kServerCrash,     ///< the server dies and comes back, not in a write to its journal
  kLostAppend,      ///< it dies in a write, of which nothing is left
  kTornAppend,      ///< of which a part is left
  kUnacknowledged,  ///< of which all is left, but not acknowledged
  kLostJournal,     ///< it comes back without its journal
  kTwoAtOnce,       ///< two of these at the same moment
  kDamage,          ///< something between a worker and the server comes damaged
  kReset,           ///< connections of workers with the server are reset: of one, several or all
  kRackLost,        ///< all workers of a rack die at the same moment
  kRackCut,         ///< two racks do not reach each other for a while, but all others
  kParted,          ///< two workers never reach each other again
};
inline constexpr std::size_t kFaults = 20;
std::string_view name(Fault fault);
using FaultCounts = std::array<std::uint64_t, kFaults>;

/// How a named call of one worker differs from those of the others.
enum class Difference : std::uint8_t { kShape, kType, kOperator };

/// The conditions of a run and what is to happen in it; all of it drawn from the seed.
struct Scenario {
  /// `large`: begins with 32 to 256 workers, as few of the others do.
  explicit Scenario(std::uint64_t seed, Mutation mutation = Mutation::kNone, bool large = false);
  /// Begins with so many workers, and has few steps.
  void enlarge(int workers);
  void draw_calls(Chance& chance);

  std::uint64_t seed;
  Mutation mutation;
  rendezvous::MembershipOptions options;
  std::uint64_t steps = 0;
  std::size_t bucket_bytes = 0;   ///< of the coordinator
  std::size_t segment_bytes = 0;  ///< of the backend
  unsigned hosts = 1;             ///< the workers are distributed over so many
  Node rack = 0;                  ///< with racks: so many workers in turn are on one host
  int all_linked = 16;            ///< up to so many members all are linked from the start
  /// In this step one worker calls another shape than the others, or has no memory for its call.
  std::optional<std::uint64_t> mismatch_in;
  std::optional<std::uint64_t> exception_in;
  Node culprit = 0;
  bool culprit_ends = false;         ///< when it gets the error
  bool named_in_background = false;  ///< by a thread of its own, which knows of no boundaries
  bool measures = false;             ///< the backend measures its links
  /// In this step one worker makes a named call that differs from those of the others.
  std::optional<std::uint64_t> named_mismatch_in;
  Difference named_mismatch = Difference::kShape;
  /// In this step all programs leave elastic::run, and enter it again.
  std::optional<std::uint64_t> leaves_run_in;
  bool leaves_run_within_step = false;  ///< by an exception, with calls under way
  bool steps_are_units = false;         ///< the named calls of a step are those of a StepGroup
  bool uneven = false;                  ///< workers have different numbers of batches, and join
  bool calls_groups = false;            ///< beside the calls of the job
  bool drops_works = false;             ///< of some named calls: nothing waits for them
  Milliseconds view_timeout = kLongViewTimeout;  ///< how long a call waits for a view
  /// A program whose call has timed out before it began ends; it calls again otherwise.
  bool ends_after_timeout = false;
  bool uses_run = true;              ///< the program calls elastic::run, so that others can join
  Milliseconds delay{0};             ///< the longest of a message
  Milliseconds starts_within{0};     ///< all workers of the beginning
  Node most_workers = kMostOfSmall;  ///< with those that come later
  Milliseconds faults_until{0};
  FaultCounts planned{};

  /// The most workers that a run begins with.
  static constexpr std::uint64_t kLargest = 256;

  /// The number of a worker's host, a rack if there are any.
  Node host_of(Node worker) const { return rack > 0 ? worker / rack : worker % hosts; }

  unsigned times(Fault fault) const {
    return static_cast<unsigned>(planned[static_cast<std::size_t>(fault)]);
  }
};

}  // namespace elastic::simulation
