// Programs that make collectives and no step boundary, for which others wait.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

class MissingCommitsTest : public MembershipTest {
 protected:
  /// Members that want warnings after a second, in `run`.
  void start_in_run(const Names& workers, MembershipOptions options = {}) {
    options.initial_np = static_cast<int>(workers.size());
    start(options);
    for (const std::string& worker : workers) {
      connected_.insert(worker);
      Register registration;
      registration.incarnation = worker;
      registration.stall = StallLimits{1000, 0};
      decide(Registered{registration});
    }
    ready(workers);
  }
  /// Heartbeats of the present view for so long.
  void train_for(Milliseconds time, std::uint64_t commits = 0) {
    for (const TimePoint until = now_ + time; now_ < until; now_ += Milliseconds(50)) {
      for (const char* worker : {"a", "b"}) {
        say(worker, Heartbeat{view().generation, {0, 0}, commits, true});
      }
    }
  }
};

TEST_F(MissingCommitsTest, AreToldWhereAWorkerWaitsToJoin) {
  start_in_run({"a", "b"});
  train_for(Milliseconds(3000));
  EXPECT_EQ(count<Warning>("a"), 0U) << "no worker waits for a step boundary";
  join("c");
  ready({"c"});
  train_for(Milliseconds(900));
  EXPECT_EQ(count<Warning>("a"), 0U);
  train_for(Milliseconds(400));
  ASSERT_EQ(count<Warning>("a"), 1U);
  EXPECT_EQ(count<Warning>("b"), 1U);
  EXPECT_THAT(last<Warning>("a")->text, HasSubstr("no step has been committed for 1"));
  EXPECT_THAT(last<Warning>("a")->text, HasSubstr("a worker waits to join at the next step"));
  EXPECT_THAT(last<Warning>("a")->text, HasSubstr("does the program call State::commit"));
  train_for(Milliseconds(600));
  EXPECT_EQ(count<Warning>("a"), 1U) << "the next after twice as long";
  train_for(Milliseconds(800));
  EXPECT_EQ(count<Warning>("a"), 2U);
}

TEST_F(MissingCommitsTest, AreToldWhereTheJobIsToStop) {
  start_in_run({"a", "b"});
  train_for(Milliseconds(100));
  decide(StopJob{});
  train_for(Milliseconds(1200));
  ASSERT_TRUE(last<Warning>("a"));
  EXPECT_THAT(last<Warning>("a")->text, HasSubstr("the job is to stop at the next step boundary"));
}

TEST_F(MissingCommitsTest, MembersThatWaitAtTheBoundaryForMoreWorkersLackNone) {
  start_in_run({"a", "b", "c"}, {.min_np = 3});
  die("c");
  report_all({"a", "b"}, 0, 0, true);
  ASSERT_TRUE(view().below_minimum);
  train_for(Milliseconds(1300));
  ASSERT_EQ(count<Warning>("a"), 1U);
  EXPECT_THAT(last<Warning>("a")->text, HasSubstr("the job is to wait for more workers at the"));
  pause_at_boundary({"a", "b"});
  train_for(Milliseconds(5000), stopped_after_);
  EXPECT_EQ(count<Warning>("a"), 1U) << "they are there";
}

TEST_F(MissingCommitsTest, StepsThatAreCommittedMeanwhileAreNone) {
  start_in_run({"a", "b"});
  join("c");
  ready({"c"});
  for (std::uint64_t commits = 1; commits < 10; ++commits) {
    train_for(Milliseconds(500), commits);
  }
  EXPECT_EQ(count<Warning>("a"), 0U);
}

}  // namespace
}  // namespace elastic::rendezvous
