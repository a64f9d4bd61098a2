#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace elastic {

/// Where the time of a change of the view went, as one worker saw it. The moments are in the order
/// in which they come; from one to the next a phase takes its time:
///
///   noticed .. reported   freeze: what this worker was doing is interrupted and stops
///   reported .. decided   decide: the reports of the others, the server's decision, its journal
///   decided .. linked     link: with members that this worker has no link to yet
///   linked .. installed   install: the lanes are given the new view
///   installed .. resumed  replay: the interrupted operation, or the next one, is completed
///
/// Where a member dies during the change, `noticed` stays and what comes after it happens again:
/// the later moment counts.
struct ViewChange {
  /// A time of the monotonic clock, which all processes of a machine share.
  using Moment = std::chrono::steady_clock::time_point;

  std::uint64_t generation = 0;  ///< of the view that it led to; 0: there was no change yet
  std::string cause;             ///< for people: the workers that came and left
  /// An operation found a link broken, or the server asked to stop, whichever was first here. In a
  /// change at a step boundary: this worker came to it.
  Moment noticed;
  Moment reported;   ///< the server was told that nothing of the old view happens here any more
  Moment decided;    ///< the new view came, and was in the journal
  Moment linked;     ///< with all other members of it
  Moment installed;  ///< operations go on
  Moment resumed;    ///< the first of them was complete here; Moment{} until then
};

}  // namespace elastic
