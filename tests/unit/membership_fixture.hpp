#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/membership/membership.hpp"

namespace elastic::rendezvous {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Plays the server's shell and all workers around a Membership, with a clock of its own. Workers
/// send heartbeats while time passes, unless they are frozen.
class MembershipTest : public testing::Test {
 protected:
  using Names = std::vector<std::string>;
  using Reason = Farewell::Reason;

  void start(MembershipOptions options);
  /// A first view of `names`, in this order.
  void start_with(const Names& names, MembershipOptions options = {});
  /// A first view of `names`, and a second one with `joiner`, which was admitted at a boundary.
  void start_with_joiner(const Names& names, const std::string& joiner);

  Decision join(const std::string& worker, std::int64_t order = -1);
  /// Registers while a launcher is there.
  Decision join_launched(const std::string& worker);
  /// Registers as a worker that links with all others in views of up to `most` members.
  Decision join_linked(const std::string& worker, std::uint64_t most);
  /// Registers as a new incarnation of a process that was a member until `last_generation`.
  Decision join_again(const std::string& worker, std::uint64_t last_generation);
  /// Registers on a new connection, with the latest view that was announced to the worker.
  Decision come_back(const std::string& worker, bool in_round = false);
  /// The server ends, and begins again with what its journal holds.
  void restart(RecoveredState memory);
  Decision say(const std::string& worker, Message message);
  Decision lose_connection(const std::string& worker, const std::string& why = "reset by peer");
  Decision die(const std::string& worker, const std::string& why = "connection closed");
  Decision decide(const Event& event);
  void receive(const std::string& worker, Message message);

  /// Answers the latest Freeze that `worker` got.
  void report(const std::string& worker, std::uint64_t position = 0, std::uint64_t commits = 0,
              bool synced = false, const std::string& needs = "");
  /// Answers it for a worker that has its training thread stopped after `commits` steps.
  void report_at_boundary(const std::string& worker, std::uint64_t position, std::uint64_t commits);
  void report_all(const Names& workers, std::uint64_t position = 0, std::uint64_t commits = 0,
                  bool synced = false);
  /// All of them promise to stop where they were asked to, and do.
  void pause_at_boundary(const Names& workers);
  /// Pauses all of them at a boundary, and reports when they are then asked to.
  void stop_at_boundary(const Names& workers, std::uint64_t position = 0);
  void ready(const Names& workers);
  /// `worker` says that the job is at its end after five steps. The other `members` do not, so the
  /// view changes when the grace has run out, and `worker` leaves.
  void finish_alone(const std::string& worker, const Names& members);

  void pass(Milliseconds time);

  template <typename T>
  std::optional<T> last(const std::string& worker) const {
    const auto found = inbox_.find(worker);
    if (found == inbox_.end()) return std::nullopt;
    for (auto message = found->second.rbegin(); message != found->second.rend(); ++message) {
      if (const T* typed = std::get_if<T>(&*message)) return *typed;
    }
    return std::nullopt;
  }
  template <typename T>
  std::size_t count(const std::string& worker) const {
    std::size_t n = 0;
    const auto found = inbox_.find(worker);
    if (found == inbox_.end()) return 0;
    for (const Message& message : found->second) n += std::holds_alternative<T>(message) ? 1U : 0U;
    return n;
  }
  Names members() const;
  const View& view() const { return membership_->view(); }
  Phase phase() const { return membership_->phase(); }

  MembershipOptions options_;
  std::optional<Membership> membership_;
  TimePoint now_{std::chrono::hours(1)};
  std::map<std::string, std::vector<Message>> inbox_;
  std::map<std::string, AnnouncedView> announced_;
  std::set<std::string> connected_;
  std::set<std::string> silent_;  ///< no heartbeats from these
  std::vector<std::uint64_t> journal_;
  std::optional<LastWord> journaled_end_;
  PendingRequests journaled_requests_;
  std::string reasons_;                   ///< of all decisions, a line each
  std::vector<Decision::Silent> to_end_;  ///< of all decisions
  std::uint64_t stopped_after_ = 0;       ///< commits, in `pause_at_boundary`
};

inline const Layout kLayout = {{"w1", "f32", 4096}, {"steps", "scalar i64", 1}};

}  // namespace elastic::rendezvous
