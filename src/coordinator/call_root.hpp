#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "coordinator/lane_view.hpp"
#include "elastic/results.hpp"

namespace elastic::coordinator {

/// The root of a call as the caller names it: a rank, or a worker.
using Root = std::variant<int, WorkerId>;

/// The worker that is the root of one call, through all its attempts.
class CallRoot {
 public:
  /// `members`: the view in force when the caller named the root. A rank must be one of theirs; the
  /// worker that has it there stays the root through view changes. A worker need not be a member.
  /// `renewed`: each view in which the call is attempted makes it anew, with the root that has this
  /// rank there. Named calls do so: all ranks begin them in the same view.
  CallRoot(Root root, const Members& members, bool renewed = false);

  /// False once the root that was named by its rank has left: a rank that calls later means another
  /// worker by the same number.
  bool can_begin(const Members& members) const {
    return named_as_worker_ || members.rank_of(incarnation_) >= 0;
  }
  /// Whether a call without this root ends as lost: the worker is the same for all members.
  bool is_lost(const Members& members) const {
    return named_as_worker_ && members.rank_of(*named_as_worker_) < 0;
  }
  /// Its rank among `members`, of which it is one: without it, the view declares the call lost.
  int rank_in(const Members& members) const;
  /// transport::Fingerprint::detail of the call.
  std::uint32_t detail(const Members& members) const;
  /// The incarnation without which the call cannot be replayed; empty if there is none.
  std::string needed() const { return renewed_ ? std::string() : incarnation_; }
  bool is_this_worker() const { return is_this_worker_; }

 private:
  std::optional<WorkerId> named_as_worker_;
  std::string incarnation_;  // empty if it was no member
  bool renewed_ = false;
  bool is_this_worker_ = false;
};

}  // namespace elastic::coordinator
