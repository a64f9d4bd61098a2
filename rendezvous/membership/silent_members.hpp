#pragma once

#include <set>
#include <string>
#include <vector>

#include "rendezvous/membership/membership.hpp"

namespace elastic::rendezvous {

/// Members that were given up because they do not answer, and that hold up others of their host
/// until their processes have ended (see Register::end_if_silent).
///
/// One holds others up only if these answer: where a whole host was paused, its workers wake up
/// together and join again. A member is therefore told of when another one of its host has been
/// heard since it was given up. A member that is alone on its host holds up no other.
///
/// Not thread-safe: belongs to the thread of its Membership.
class SilentMembers {
 public:
  bool empty() const { return silent_.empty(); }
  /// `member` of `view` is given up.
  void add(const View& view, const Member& member, const std::string& why);
  /// Another worker has its label, or the same process as another incarnation: it has ended or
  /// answers.
  void forget(const std::string& label);
  /// Takes out those that hold up the member `heard`, which answers.
  std::vector<Decision::Silent> take(const std::string& heard);

 private:
  struct Entry {
    Decision::Silent silent;
    std::set<std::string> neighbours;  ///< incarnations of the other members of its host
  };
  std::vector<Entry> silent_;
};

}  // namespace elastic::rendezvous
