#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace elastic::simulation {

/// The defect that a run has on purpose, to prove that the checks notice it. The product's code is
/// unchanged: the simulated shells around it behave as a product with this defect would.
enum class Mutation : std::uint8_t {
  kNone,
  kDropFence,         ///< workers count frames of other generations
  kEarlyConclusion,   ///< the server decides with one report too few
  kForgottenFloor,    ///< a server that comes back gives the generation after the journal's again
  kEarlyRelease,      ///< workers return a result that lies with the caller before all have theirs
  kUnfrozenBoundary,  ///< a worker at a step boundary reports without having frozen its lanes
  kLostMeansDead,     ///< the server takes a worker that lost its connection for dead
  kEarlyError,        ///< workers return an error that all share before all have it
  kStayAfterException,  ///< a worker does not leave after its operation threw
  kForgottenTimeout,    ///< a call that timed out after it had begun lets the next call take its
                        ///< place
  kBusyThread,          ///< a program's thread calls again at once when its worker has left
  kUndialedLink,        ///< workers never dial a link that an operation needs first
  kUnreportedLink,      ///< workers do not report that a link failed in an operation
  kMixedStep,      ///< workers take the sums of a step as they are, over different contributors
  kPresentRoster,  ///< the rules of groups are applied to the members of the present view
  kLateRoster,     ///< the rules of groups are applied to the members of the first view in force
  kStaleLastRank,  ///< workers take the last rank in join for one of the view before
};

inline constexpr std::array kMutations{Mutation::kNone,
                                       Mutation::kDropFence,
                                       Mutation::kEarlyConclusion,
                                       Mutation::kForgottenFloor,
                                       Mutation::kEarlyRelease,
                                       Mutation::kUnfrozenBoundary,
                                       Mutation::kLostMeansDead,
                                       Mutation::kEarlyError,
                                       Mutation::kStayAfterException,
                                       Mutation::kForgottenTimeout,
                                       Mutation::kBusyThread,
                                       Mutation::kUndialedLink,
                                       Mutation::kUnreportedLink,
                                       Mutation::kMixedStep,
                                       Mutation::kPresentRoster,
                                       Mutation::kLateRoster,
                                       Mutation::kStaleLastRank};

constexpr std::string_view name(Mutation mutation) {
  switch (mutation) {
    case Mutation::kNone:
      return "none";
    case Mutation::kDropFence:
      return "drop-fence";
    case Mutation::kEarlyConclusion:
      return "early-conclusion";
    case Mutation::kForgottenFloor:
      return "forgotten-floor";
    case Mutation::kEarlyRelease:
      return "early-release";
    case Mutation::kUnfrozenBoundary:
      return "unfrozen-boundary";
    case Mutation::kLostMeansDead:
      return "lost-means-dead";
    case Mutation::kEarlyError:
      return "early-error";
    case Mutation::kStayAfterException:
      return "stay-after-exception";
    case Mutation::kForgottenTimeout:
      return "forgotten-timeout";
    case Mutation::kBusyThread:
      return "busy-thread";
    case Mutation::kUndialedLink:
      return "undialed-link";
    case Mutation::kUnreportedLink:
      return "unreported-link";
    case Mutation::kMixedStep:
      return "mixed-step";
    case Mutation::kPresentRoster:
      return "present-roster";
    case Mutation::kLateRoster:
      return "late-roster";
    case Mutation::kStaleLastRank:
      return "stale-last-rank";
  }
  return "?";
}

}  // namespace elastic::simulation
