#include "runtime/participation.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/end_before_init.hpp"

namespace elastic::runtime {
namespace {

using rendezvous::Freeze;
using rendezvous::Message;
using rendezvous::Paused;
using rendezvous::Promise;
using rendezvous::Report;
using rendezvous::SharedView;
using rendezvous::View;
using ::testing::ElementsAre;

/// A member of a view with one other, around a Participation: two lanes, and a training thread that
/// stops where it was asked to.
class ParticipationTest : public testing::Test, protected Participation::Effects {
 protected:
  void SetUp() override {
    participation_.on_announce(view(1));
    participation_.on_linked(1);
    ASSERT_EQ(installed_, 1U);
  }

  static SharedView view(std::uint64_t generation) {
    View view;
    view.generation = generation;
    view.members.resize(2);
    view.members[0].incarnation = "self";
    view.members[1].incarnation = "other";
    view.lanes.resize(2);
    return std::make_shared<const View>(view);
  }
  static Freeze at_once(std::uint64_t round) { return {1, round, 0, "a death"}; }
  static Freeze at_commit(std::uint64_t round, std::uint64_t commit) {
    return {1, round, commit, "a join"};
  }

  /// The training thread completes a step.
  void commit() {
    ASSERT_FALSE(paused_for_);
    ++commits_;
    if (stop_at_ == 0 || commits_ < stop_at_) return;
    stop_at_ = 0;
    paused_for_ = round_;
    participation_.on_paused(round_);
  }
  /// The lanes have stopped, at these positions.
  void quiesce(std::uint64_t lane_0, std::uint64_t lane_1) {
    participation_.on_quiesced(0, {lane_0, ""});
    participation_.on_quiesced(1, {lane_1, ""});
  }

  template <typename T>
  std::vector<T> sent() const {
    std::vector<T> result;
    for (const Message& message : sent_) {
      if (const T* typed = std::get_if<T>(&message)) result.push_back(*typed);
    }
    return result;
  }

  // Effects
  void send(const Message& message) override { sent_.push_back(message); }
  void freeze_lanes() override { frozen_ = true; }
  void begin_lanes_at(const std::vector<std::uint64_t>& /*positions*/) override {}
  void connect(const View& /*view*/) override {}
  void cancel_connect() override {}
  void watch_for_end(const rendezvous::Member& member) override {
    watched_.push_back(member.incarnation);
  }
  void forget_ends() override { watched_.clear(); }
  void install(const View& view) override {
    installed_ = view.generation;
    frozen_ = false;
  }
  Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit) override {
    const bool ahead = commits_ < at_commit;
    stop_at_ = ahead ? at_commit : 0;
    round_ = round;
    return {ahead, commits_};
  }
  void withdraw() override { stop_at_ = 0; }
  void resume() override { paused_for_.reset(); }
  bool paused_for(std::uint64_t round) const override { return paused_for_ == round; }
  std::uint64_t commits() const override { return commits_; }
  std::vector<std::uint64_t> positions() const override { return {0, 0}; }
  bool synced() const override { return true; }
  void end(const Status& /*reason*/) override {}

  std::vector<Message> sent_;
  bool frozen_ = false;
  std::uint64_t installed_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t stop_at_ = 0;
  std::uint64_t round_ = 0;
  std::optional<std::uint64_t> paused_for_;
  std::vector<std::string> watched_;
  Participation participation_{"self", 2, *this};
};

TEST_F(ParticipationTest, EntersViewsInWhichItsRankIsLowerOrHigherAndNoOthers) {
  std::uint64_t generation = 1;
  for (const std::size_t rank : {0U, 3U, 3U, 1U, 4U, 9U, 0U, 2U}) {
    View ranked = *view(++generation);
    ranked.members.assign(5, ranked.members[1]);
    if (rank < ranked.members.size()) ranked.members[rank].incarnation = "self";
    participation_.on_announce(std::make_shared<const View>(ranked));
    quiesce(0, 0);
    participation_.on_linked(generation);
    EXPECT_EQ(installed_ == generation, rank < ranked.members.size()) << "rank " << rank;
  }
}

TEST_F(ParticipationTest, WatchesForTheEndOfMembersThatItIsAskedAboutUntilTheNextView) {
  participation_.on_check({{"stranger", "other", "self"}});
  EXPECT_THAT(watched_, ElementsAre("other"));
  participation_.on_ended("other");
  ASSERT_EQ(sent<rendezvous::Gone>().size(), 1U);
  EXPECT_EQ(sent<rendezvous::Gone>()[0].incarnation, "other");
  participation_.on_announce(view(2));
  EXPECT_TRUE(watched_.empty());
}

TEST_F(ParticipationTest, WatchesForTheEndOfMembersOfItsHostThatItDoesNotKnow) {
  rendezvous::Member stranger;
  stranger.incarnation = "stranger";
  participation_.on_check({{"stranger"}, {{stranger}}});
  EXPECT_THAT(watched_, ElementsAre("stranger"));
}

/// Other threads' operations go on then, so a report would promise what does not hold.
TEST_F(ParticipationTest, AStopAtABoundaryIsNoReport) {
  participation_.on_freeze(at_commit(1, 2));
  commit();
  EXPECT_TRUE(sent<Paused>().empty());
  commit();
  ASSERT_EQ(sent<Paused>().size(), 1U);
  EXPECT_EQ(sent<Paused>()[0].round, 1U);
  EXPECT_EQ(sent<Paused>()[0].commits, 2U);
  EXPECT_TRUE(sent<Report>().empty());
  EXPECT_FALSE(frozen_);
  EXPECT_FALSE(participation_.registration({}).in_round);
}

TEST_F(ParticipationTest, ReportsAtABoundaryWhenBothLanesAreQuiesced) {
  participation_.on_freeze(at_commit(1, 1));
  commit();
  participation_.on_freeze(at_once(2));
  EXPECT_TRUE(frozen_);
  participation_.on_quiesced(0, {8, ""});
  EXPECT_TRUE(sent<Report>().empty()) << "an operation of the other lane may still be completed";
  participation_.on_quiesced(1, {5, ""});
  ASSERT_EQ(sent<Report>().size(), 1U);
  const Report report = sent<Report>()[0];
  EXPECT_EQ(report.round, 2U);
  EXPECT_THAT(report.lanes, ElementsAre(Report::Lane{8, ""}, Report::Lane{5, ""}));
  EXPECT_EQ(report.commits, 1U);
  EXPECT_TRUE(report.at_boundary);
  EXPECT_TRUE(paused_for_) << "it stays there until the next view";
  participation_.on_announce(view(2));
  EXPECT_TRUE(paused_for_);
  participation_.on_linked(2);
  EXPECT_EQ(installed_, 2U);
  EXPECT_FALSE(paused_for_);
}

TEST_F(ParticipationTest, ReportsAwayFromABoundaryWhereTheTrainingThreadHasNotStopped) {
  participation_.on_freeze(at_commit(1, 5));
  commit();
  participation_.on_freeze(at_once(2));
  quiesce(3, 0);
  ASSERT_EQ(sent<Report>().size(), 1U);
  EXPECT_FALSE(sent<Report>()[0].at_boundary);
  participation_.on_announce(view(2));
  participation_.on_linked(2);
  for (int i = 0; i < 5; ++i) commit();
  EXPECT_TRUE(sent<Paused>().empty()) << "the promise was the former view's";
}

/// Another member had passed the commit: all go on in the same view, with lanes that never stopped.
TEST_F(ParticipationTest, ALaterRoundLetsTheTrainingThreadGoOn) {
  participation_.on_freeze(at_commit(1, 1));
  commit();
  participation_.on_freeze(at_commit(2, 3));
  EXPECT_FALSE(paused_for_);
  EXPECT_TRUE(sent<Promise>().back().accepted);
  commit();
  commit();
  EXPECT_EQ(sent<Paused>().back().round, 2U);
  participation_.on_freeze(at_once(3));
  quiesce(0, 0);
  EXPECT_TRUE(sent<Report>().back().at_boundary);
  EXPECT_EQ(sent<Report>().back().commits, 3U);
}

TEST_F(ParticipationTest, WithoutTheServerTrainingGoesOnFromABoundary) {
  participation_.on_freeze(at_commit(1, 1));
  commit();
  participation_.on_disconnected();
  EXPECT_FALSE(paused_for_);
  commit();
  participation_.on_freeze(at_once(9));
  quiesce(0, 0);
  EXPECT_FALSE(sent<Report>().back().at_boundary);
  EXPECT_TRUE(participation_.registration({}).in_round);
}

/// A report stays valid: the next server knows that this worker has reported.
TEST_F(ParticipationTest, WithoutTheServerAReportBinds) {
  participation_.on_freeze(at_commit(1, 1));
  commit();
  participation_.on_freeze(at_once(2));
  quiesce(0, 0);
  participation_.on_disconnected();
  EXPECT_TRUE(paused_for_);
  EXPECT_TRUE(participation_.registration({}).in_round);
  participation_.on_freeze(at_once(7));
  ASSERT_EQ(sent<Report>().size(), 2U);
  EXPECT_EQ(sent<Report>().back().round, 7U);
  EXPECT_TRUE(sent<Report>().back().at_boundary);
}

/// The notice of the stop may come after the freeze.
TEST_F(ParticipationTest, AStopThatIsNoticedWhileTheLanesFreezeCounts) {
  participation_.on_freeze(at_commit(1, 1));
  commits_ = 1;
  paused_for_ = 1;
  participation_.on_freeze(at_once(2));
  participation_.on_paused(1);
  EXPECT_TRUE(sent<Paused>().empty());
  quiesce(0, 0);
  EXPECT_TRUE(sent<Report>().back().at_boundary);
}

/// A worker that a drain lets go in its `init` is not told that the job is done.
TEST(EndBeforeInit, NamesTheReason) {
  EXPECT_STREQ(end_before_init(RunOutcome::kRemoved),
               "this worker was asked to leave before its elastic::init returned; the worker ends");
  EXPECT_STREQ(end_before_init(RunOutcome::kStopped),
               "the job was stopped before this worker joined it; the worker ends");
  EXPECT_STREQ(end_before_init(RunOutcome::kLeftOut),
               "the job was done before this worker joined it; the worker ends");
}

}  // namespace
}  // namespace elastic::runtime
