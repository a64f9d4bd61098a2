// Requests that are not carried out when the server dies: the next server does it.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

class PendingRequestsTest : public MembershipTest {
 protected:
  RecoveredState journal() const {
    return {view(), view().generation + 1, journaled_end_, false, journaled_requests_};
  }
  void tell_heartbeat(const std::string& worker) {
    say(worker, Heartbeat{view().generation, {}, 0});
  }
};

TEST_F(PendingRequestsTest, AStopIsCarriedOutByTheNextServer) {
  start_with({"a", "b"});
  ready({"a", "b"});
  EXPECT_TRUE(decide(StopJob{}).ok);
  restart(journal());
  come_back("a");
  come_back("b");
  EXPECT_FALSE(last<Farewell>("a")) << "they have yet to say whether they reach a boundary";
  ready({"a", "b"});
  pause_at_boundary({"a", "b"});
  EXPECT_EQ(phase(), Phase::kDone);
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kStopped);
  EXPECT_TRUE(journaled_requests_.empty()) << "the job's end has them behind it";
}

TEST_F(PendingRequestsTest, AStopWithoutRunToo) {
  start_with({"a", "b"}, {.min_np = 1});
  ready({"a", "b"});
  decide(StopJob{true});
  restart(journal());
  come_back("a");
  come_back("b");
  tell_heartbeat("a");
  EXPECT_EQ(phase(), Phase::kRunning) << "the other may be in run";
  pass(options_.heartbeat);
  tell_heartbeat("b");
  pass(options_.heartbeat);
  EXPECT_EQ(phase(), Phase::kDone);
  EXPECT_TRUE(membership_->ends_workers()) << "a launcher was there when the job was stopped";
}

TEST_F(PendingRequestsTest, AStopThatComesWhileTheMembersComeBackWaitsForABoundary) {
  start_with({"a", "b"});
  ready({"a", "b"});
  restart(journal());
  come_back("a");
  EXPECT_THAT(decide(StopJob{}).answer, HasSubstr("at the next step boundary"));
  come_back("b");
  ready({"a", "b"});
  EXPECT_EQ(phase(), Phase::kChanging);
  pause_at_boundary({"a", "b"});
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kStopped);
}

TEST_F(PendingRequestsTest, ARemovalIsCarriedOutByTheNextServer) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  decide(RemoveWorker{1});
  restart(journal());
  come_back("a");
  come_back("c");
  EXPECT_TRUE(decide(RemoveWorker{0}).answer.empty());
  EXPECT_THAT(reasons_, HasSubstr("the members come back"));
  come_back("b");
  EXPECT_EQ(count<Freeze>("b"), 1U) << "for the first server's round only";
  ready({"a", "b", "c"});
  stop_at_boundary({"a", "b", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kRemoved);
}

TEST_F(PendingRequestsTest, AnotherServerInBetweenForgetsNothing) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  decide(RemoveWorker{1});
  restart(journal());
  come_back("a");
  decide(StopJob{});  // which keeps what was asked before
  EXPECT_THAT(journaled_requests_.removals, ElementsAre("b"));
  EXPECT_TRUE(journaled_requests_.stop);
}

TEST_F(PendingRequestsTest, AWithdrawnRemovalIsForgotten) {
  start_with({"a", "b"});
  ready({"a", "b"});
  decide(RemoveWorker{0});
  EXPECT_THAT(journaled_requests_.removals, ElementsAre("a"));
  die("b");
  report("a", 4, 1, true);
  EXPECT_TRUE(journaled_requests_.empty());
}

TEST_F(PendingRequestsTest, AJobThatBeginsAnewIsNotStopped) {
  start_with({"a"});
  ready({"a"});
  decide(StopJob{});
  restart(journal());
  join("x");
  pass(options_.start_timeout);
  EXPECT_THAT(members(), ElementsAre("x"));
  ready({"x"});
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_TRUE(journaled_requests_.empty());
}

TEST_F(PendingRequestsTest, AStopThatComesMeanwhileStopsItAllTheSame) {
  start_with({"a"});
  restart(journal());
  join("x");
  EXPECT_TRUE(decide(StopJob{}).ok);
  pass(options_.start_timeout);
  EXPECT_EQ(phase(), Phase::kDone);
  EXPECT_EQ(last<Farewell>("x")->reason, Reason::kStopped);
}

TEST_F(PendingRequestsTest, NothingIsKeptOfAJobThatHadNotBegun) {
  start({.initial_np = 2});
  join("a");
  decide(StopJob{});
  EXPECT_TRUE(journaled_requests_.empty());
}

}  // namespace
}  // namespace elastic::rendezvous
