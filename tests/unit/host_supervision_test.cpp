#include "rendezvous/hosts/host_supervision.hpp"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/hosts/missing_workers.hpp"
#include "rendezvous/launcher/exit_code.hpp"

namespace elastic::hosts {

namespace exit_code = launcher::exit_code;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ExitStatus kSuccess{};
constexpr ExitStatus kKilled{.code = 0, .signal = SIGKILL};
constexpr ExitStatus code(int code) {
  return {.code = code, .signal = 0};
}

/// HostSupervision with a clock that the test moves.
struct World {
  explicit World(HostSupervisionOptions options = {}) : supervision(options) {}

  void happens(const Event& event) {
    started.clear();
    limited.clear();
    said.clear();
    expected = added = std::nullopt;
    for (const auto& action : supervision.decide(event, now)) {
      if (const auto* start = std::get_if<StartAgent>(&action)) {
        started.push_back(start->host + " " + std::to_string(start->number) + ": " +
                          std::to_string(start->np) + " of " + std::to_string(start->slots));
      }
      if (const auto* limit = std::get_if<LimitHost>(&action)) {
        limited.push_back(limit->host + ": " + std::to_string(limit->slots));
      }
      if (const auto* expect = std::get_if<Expect>(&action)) expected = expect->workers;
      if (const auto* add = std::get_if<AddWorkers>(&action)) added = add->count;
      if (const auto* say = std::get_if<Say>(&action)) said += say->text + "\n";
      if (std::holds_alternative<EndAgents>(action)) ++ends;
      if (std::holds_alternative<KillAgents>(action)) ++kills;
      if (const auto* kill = std::get_if<KillAgent>(&action)) killed.push_back(kill->host);
      if (std::holds_alternative<RequestStop>(action)) ++stops;
      if (const auto* finish = std::get_if<Finish>(&action)) finished = *finish;
    }
  }
  void passes(Milliseconds time) {
    now += time;
    happens(TimePassed{});
  }
  void runs() { happens(JobStateChanged{JobPhase::kRunning, "", true}); }

  HostSupervision supervision;
  TimePoint now{};
  std::vector<std::string> started;
  std::vector<std::string> limited;
  std::string said;
  std::optional<int> expected;
  std::optional<int> added;
  int ends = 0;
  int kills = 0;
  std::vector<std::string> killed;
  int stops = 0;
  std::optional<Finish> finished;
};

const HostList kTwo = {{"a", 2}, {"b", 2}};

TEST(HostSupervision, NamesACommandThatStartsNoElasticrun) {
  for (const int number : {0, 1}) {
    World world;
    world.happens(ListChanged{kTwo});
    world.happens(AgentEnded{"b", code(number), "no such thing", "rsh -x b"});
    EXPECT_THAT(world.said, HasSubstr("host b: the command 'rsh -x b' (--ssh) exited with code " +
                                      std::to_string(number) +
                                      ", and no elasticrun came from there: no such thing; try: "
                                      "rsh -x b true; 2 workers missing; tried again in 1 s"));
    world.happens(AgentEnded{"a", code(1), "elasticrun a: no room", "rsh -x a"});
    EXPECT_THAT(world.said, HasSubstr("host a: its elasticrun exited with code 1; "))
        << "it has said why";
  }
}

TEST(HostSupervision, BeginsWithAllSlotsOrWithSoManyWorkers) {
  World all;
  all.happens(ListChanged{kTwo});
  EXPECT_THAT(all.started, ElementsAre("a 0: 2 of 2", "b 1: 2 of 2"));
  EXPECT_EQ(all.expected, 4);
  World some({.np = 3});
  some.happens(ListChanged{kTwo});
  EXPECT_THAT(some.started, ElementsAre("a 0: 2 of 2", "b 1: 1 of 2"));
  World packed({.np = 2, .placement = Placement::kPack});
  packed.happens(ListChanged{kTwo});
  EXPECT_THAT(packed.started, ElementsAre("a 0: 2 of 2", "b 1: 0 of 2")) << "b has room";
  World bounded({.max_np = 3});
  bounded.happens(ListChanged{kTwo});
  EXPECT_EQ(bounded.expected, 3);
  World few({.np = 6});
  few.happens(ListChanged{kTwo});
  EXPECT_THAT(few.said, HasSubstr("beginning with 4 workers of 6"));
}

TEST(HostSupervision, TheJobBeginsWithoutAHostThatCannotBeReached) {
  World world;
  world.happens(ListChanged{kTwo});
  world.happens(AgentEnded{"b", code(255), "Connection refused"});
  EXPECT_EQ(world.expected, 2);
  EXPECT_THAT(world.said,
              HasSubstr("host b: it cannot be reached, or the connection was cut off: Connection "
                        "refused; 2 workers missing; tried again in 1 s"));
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, ElementsAre("b 1: 2 of 2"));
  world.happens(AgentEnded{"b", code(255), ""});
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, IsEmpty()) << "the pause doubles";
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, ElementsAre("b 1: 2 of 2"));
}

TEST(HostSupervision, WorkersOfALostHostAreStartedWhereThereIsRoom) {
  World world({.np = 4});
  world.happens(ListChanged{{{"a", 2}, {"b", 2}, {"c", 3}}});
  world.runs();
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 2}, {"b", 1}, {"c", 1}}, {}, true});
  world.happens(AgentEnded{"a", kKilled, ""});
  EXPECT_THAT(world.said,
              HasSubstr("host a: its elasticrun died of signal 9 (Killed); 2 workers lost"));
  world.happens(Counted{{{"b", 1}, {"c", 1}}, {}, false});
  EXPECT_FALSE(world.added) << "no worker can join";
  world.happens(Counted{{{"b", 1}, {"c", 1}}, {}, true});
  EXPECT_EQ(world.added, 2);
  world.happens(Counted{{{"b", 2}, {"c", 2}}, {}, true});
  EXPECT_FALSE(world.added);
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, ElementsAre("a 0: 0 of 2")) << "it is back, and has room";
}

TEST(HostSupervision, AHostInQuarantineGetsAnAgentWithoutWorkers) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.now += Milliseconds(5000);
  world.happens(AgentEnded{"a", code(1), ""});
  world.happens(Counted{{{"b", 2}}, {}, true, {"a"}});
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, ElementsAre("a 0: 0 of 2"));
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 0}, {"b", 2}}, {}, true, {"a"}});
  EXPECT_FALSE(world.added) << "its slots are not to be had";
  world.happens(Counted{{{"a", 0}, {"b", 2}}, {}, true});
  EXPECT_EQ(world.added, 2);
}

TEST(HostSupervision, AHostThatIsListedAgainInQuarantineGetsItsWorkersAfterIt) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(ListChanged{{{"a", 2}}});
  world.happens(AgentEnded{"b", code(exit_code::kDrained), ""});
  world.happens(Counted{{{"a", 2}}, {}, true, {"b"}});
  world.happens(ListChanged{kTwo});
  EXPECT_THAT(world.started, ElementsAre("b 1: 0 of 2"));
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 2}, {"b", 0}}, {}, true});
  EXPECT_EQ(world.added, 2);
}

TEST(HostSupervision, WhereThereIsNoRoomTheyComeBackWithTheirHost) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.now += Milliseconds(5000);
  world.happens(AgentEnded{"a", code(255), ""});
  world.happens(Counted{{{"b", 2}}, {}, true});
  EXPECT_FALSE(world.added);
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, ElementsAre("a 0: 2 of 2"));
}

TEST(HostSupervision, FollowsTheList) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(ListChanged{{{"a", 2}, {"b", 2}, {"c", 2}}});
  EXPECT_THAT(world.started, ElementsAre("c 2: 2 of 2"));
  world.happens(ListChanged{{{"b", 1}, {"c", 2}}});
  EXPECT_THAT(world.limited, ElementsAre("a: 0", "b: 1"));
  EXPECT_THAT(world.said, HasSubstr("host a is not in the list any more"));
  world.happens(AgentEnded{"a", code(75), ""});
  EXPECT_FALSE(world.finished);
  world.passes(Milliseconds(100000));
  EXPECT_THAT(world.started, IsEmpty()) << "it has left";
  world.happens(ListChanged{{{"a", 2}, {"b", 1}, {"c", 2}}});
  EXPECT_THAT(world.started, ElementsAre("a 0: 2 of 2"));
}

TEST(HostSupervision, AHostInThePlaceOfAnotherGetsItsWorkers) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(ListChanged{{{"a", 2}, {"c", 2}}});
  EXPECT_THAT(world.limited, ElementsAre("b: 0"));
  EXPECT_THAT(world.started, ElementsAre("c 2: 2 of 2"));
}

TEST(HostSupervision, SlotsMayMoveBetweenHosts) {
  for (const HostList& list : {HostList{{"a", 1}, {"b", 3}}, HostList{{"a", 3}, {"b", 1}}}) {
    World world;
    world.happens(ListChanged{kTwo});
    world.runs();
    world.now += Milliseconds(5000);
    world.happens(ListChanged{list});
    const bool a_grows = list[0].slots == 3;
    world.happens(Counted{{{"a", a_grows ? 2 : 1}, {"b", a_grows ? 1 : 2}}, {}, true});
    EXPECT_EQ(world.added, 1);
  }
}

TEST(HostSupervision, AHostThatIsPutBackWhileItLeavesComesBack) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(ListChanged{{{"a", 2}}});
  world.happens(ListChanged{kTwo});
  EXPECT_THAT(world.started, IsEmpty()) << "its agent is still there";
  world.happens(AgentEnded{"b", code(75), ""});
  EXPECT_THAT(world.started, ElementsAre("b 1: 2 of 2"));
}

TEST(HostSupervision, ADrainedHostRestsHoweverItsAgentEnds) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 2}, {"b", 2}}, {"b"}, true});
  world.happens(AgentEnded{"b", kKilled, ""});
  world.passes(Milliseconds(100000));
  EXPECT_THAT(world.started, IsEmpty());
  world.happens(ListChanged{{{"b", 2}, {"a", 2}}});
  EXPECT_THAT(world.started, IsEmpty()) << "the same hosts in another order";
  world.happens(ListChanged{{{"a", 2}}});
  world.happens(ListChanged{kTwo});
  EXPECT_THAT(world.started, ElementsAre("b 1: 2 of 2"));
}

TEST(HostSupervision, NewHostsRaiseTheNumberOfWorkersToTheMost) {
  World world({.np = 2, .max_np = 3});
  world.happens(ListChanged{{{"a", 2}}});
  world.runs();
  world.happens(ListChanged{kTwo});
  EXPECT_THAT(world.started, ElementsAre("b 1: 1 of 2"));
}

TEST(HostSupervision, MoreSlotsGetWorkersOnceTheServerKnowsThem) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 2}, {"b", 2}}, {}, true});
  world.happens(ListChanged{{{"a", 4}, {"b", 2}}});
  EXPECT_THAT(world.limited, ElementsAre("a: 4"));
  world.happens(Counted{{{"a", 2}, {"b", 2}}, {}, true});
  EXPECT_EQ(world.added, 2);
}

TEST(HostSupervision, ADrainedHostRestsUntilTheListNamesItAnew) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(AgentEnded{"b", code(75), ""});
  EXPECT_THAT(world.said, HasSubstr("host b has been drained"));
  world.passes(Milliseconds(100000));
  EXPECT_THAT(world.started, IsEmpty());
}

TEST(HostSupervision, AWorkerThatFailsBeforeTheJobHasBegunEndsIt) {
  World world;
  world.happens(ListChanged{kTwo});
  world.happens(AgentEnded{"b", code(exit_code::kFailedAtStart), ""});
  EXPECT_EQ(world.ends, 1);
  world.happens(AgentEnded{"a", code(75), ""});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_THAT(world.finished->reason,
              HasSubstr("workers of host b failed before the job had begun"));
}

/// A program in the place of ssh may end with the code of a failed job.
TEST(HostSupervision, AnUnknownFailureBeforeTheJobHasBegunIsTriedAgain) {
  World world;
  world.happens(ListChanged{kTwo});
  world.started.clear();
  world.happens(AgentEnded{"b", code(exit_code::kFailed), ""});
  EXPECT_EQ(world.ends, 0);
  world.passes(Milliseconds(1000));
  EXPECT_THAT(world.started, ElementsAre("b 1: 2 of 2"));
}

/// Its agent's end may be heard of after the job's.
TEST(HostSupervision, WorkersThatWereLostWhileTheJobRanHaveNotFailedAfterItsEnd) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(JobStateChanged{JobPhase::kDone, ""});
  world.happens(AgentEnded{"b", code(exit_code::kWorkersLost), ""});
  world.happens(AgentEnded{"a", kSuccess, ""});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
}

TEST(HostSupervision, EndsWithTheJobsVerdict) {
  World done;
  done.happens(ListChanged{kTwo});
  done.runs();
  done.happens(AgentEnded{"a", kSuccess, ""});
  EXPECT_FALSE(done.finished);
  done.happens(JobStateChanged{JobPhase::kDone, ""});
  done.happens(AgentEnded{"b", kSuccess, ""});
  ASSERT_TRUE(done.finished);
  EXPECT_EQ(done.finished->exit_code, 0);

  World failed;
  failed.happens(ListChanged{kTwo});
  failed.runs();
  failed.happens(JobStateChanged{JobPhase::kFailed, "too few"});
  failed.happens(AgentEnded{"a", code(1), ""});
  failed.happens(AgentEnded{"b", code(1), ""});
  ASSERT_TRUE(failed.finished);
  EXPECT_EQ(failed.finished->exit_code, 1);
  EXPECT_THAT(failed.finished->reason, HasSubstr("too few"));
}

TEST(HostSupervision, WithoutAnyHostItEndsAndSaysWhy) {
  World world;
  world.happens(ListChanged{kTwo});
  world.happens(AgentEnded{"a", code(127), "elasticrun: not found"});
  world.happens(AgentEnded{"b", code(4), "the command ended with code 7"});
  EXPECT_FALSE(world.finished) << "the server's word may be on its way";
  world.passes(Milliseconds(1000));
  EXPECT_FALSE(world.finished) << "they are tried again";
  world.happens(AgentEnded{"a", code(3), "wrong secret"});
  world.happens(AgentEnded{"b", code(3), "wrong version"});
  world.passes(Milliseconds(1000));
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_THAT(world.finished->reason,
              HasSubstr("host a: its elasticrun was refused: wrong secret"));
  EXPECT_THAT(world.finished->reason,
              HasSubstr("host b: its elasticrun was refused: wrong version"));
}

TEST(HostSupervision, WhereNoHostCouldBePreparedItSaysSoByItsCode) {
  World world({.start = Milliseconds(0)});
  world.happens(ListChanged{{{"a", 2}}});
  world.happens(AgentEnded{"a", code(4), ""});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 4);
}

TEST(HostSupervision, AJobWhoseWorkersWereStoppedWhereTheyAreHasFailed) {
  World world;
  world.happens(ListChanged{{{"a", 2}}});
  world.runs();
  world.happens(JobStateChanged{JobPhase::kDone, "", false, /*end_workers=*/true});
  world.happens(AgentEnded{"a", code(1), ""});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason, "the job was stopped, and its workers where they were");
}

TEST(HostSupervision, SignalsStopTheJobThenTheWorkersThenKill) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(SignalReceived{SIGINT});
  EXPECT_EQ(world.stops, 1);
  world.happens(SignalReceived{SIGINT});
  EXPECT_EQ(world.ends, 1);
  world.happens(SignalReceived{SIGINT});
  EXPECT_EQ(world.kills, 1);
  world.happens(AgentEnded{"a", kKilled, ""});
  world.happens(AgentEnded{"b", kKilled, ""});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_THAT(world.finished->reason, HasSubstr("SIGINT"));
}

TEST(HostSupervision, AnAgentThatDoesNotReachTheServerIsGivenUp) {
  World world({.start = Milliseconds(10000)});
  world.happens(ListChanged{kTwo});
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 2}}, {}, false});
  world.passes(Milliseconds(7000));
  EXPECT_THAT(world.killed, ElementsAre("b"));
  world.happens(AgentEnded{"b", kKilled, ""});
  EXPECT_EQ(world.expected, 2) << "the job begins without it";
  EXPECT_THAT(world.said, HasSubstr("host b: its elasticrun did not reach the job's server within "
                                    "10 s (--start-timeout-ms); 2 workers missing; tried again"));
  EXPECT_FALSE(world.finished);
  world.happens(AgentEnded{"a", kKilled, ""});
  ASSERT_TRUE(world.finished) << "the time to begin is over";
  EXPECT_THAT(world.finished->reason, HasSubstr("no host is left to run workers; host a: "));
}

TEST(HostSupervision, AnAgentThatPreparesIsNamedAndWaitedFor) {
  World world({.start = Milliseconds(10000), .prepares = true});
  world.happens(ListChanged{kTwo});
  world.passes(Milliseconds(12000));
  EXPECT_THAT(world.killed, IsEmpty());
  EXPECT_THAT(world.said,
              HasSubstr("host b: its elasticrun has not reached the job's server for "));
}

TEST(HostSupervision, AfterTheJobAnAgentThatNeverCameIsNotWaitedFor) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.now += Milliseconds(5000);
  world.happens(Counted{{{"a", 2}}, {}, true});
  world.happens(JobStateChanged{JobPhase::kDone, ""});
  world.passes(Milliseconds(6000));
  EXPECT_THAT(world.killed, ElementsAre("b"));
  EXPECT_THAT(world.said, HasSubstr("host b: its elasticrun never reached"));
  EXPECT_THAT(world.said, HasSubstr("waiting for the elasticrun of a to end, for at most 309 s"));
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.ends, 1) << "at once";
}

TEST(HostSupervision, AgentsThatDoNotEndAreEnded) {
  World world;
  world.happens(ListChanged{kTwo});
  world.runs();
  world.happens(JobStateChanged{JobPhase::kDone, ""});
  world.passes(Milliseconds(300000));
  EXPECT_EQ(world.ends, 0) << "their own limit";
  world.passes(Milliseconds(15000));
  EXPECT_EQ(world.ends, 1);
  world.passes(Milliseconds(10000));
  EXPECT_EQ(world.kills, 1);
}

/// As an edit of the list, or `ctl drain`, while the workers start.
TEST(HostSupervision, TheFirstViewWaitsForNoWorkerOfAHostThatHasLeft) {
  World world;
  world.happens(ListChanged{{{"a", 2}, {"b", 2}, {"c", 2}}});
  EXPECT_EQ(world.expected, 6);
  world.happens(ListChanged{{{"b", 2}, {"c", 2}}});
  EXPECT_THAT(world.limited, ElementsAre("a: 0"));
  EXPECT_FALSE(world.expected) << "its workers are still there";
  world.happens(AgentEnded{"a", code(75), ""});
  EXPECT_EQ(world.expected, 4);
  EXPECT_EQ(world.supervision.expected(), 4);
  EXPECT_THAT(world.said, HasSubstr("the hosts have changed: the job begins with 4 workers"));
  world.passes(Milliseconds(5000));
  world.happens(Counted{{{"b", 2}, {"c", 2}}, {"b"}});
  world.happens(AgentEnded{"b", code(75), ""});
  EXPECT_EQ(world.expected, 2);
  world.runs();
  world.happens(ListChanged{{{"c", 2}, {"d", 2}}});
  EXPECT_FALSE(world.expected) << "the job has begun";
}

/// With -np its workers are added where there is room, once the job runs.
TEST(HostSupervision, AHostThatReplacesAnotherOneAtTheStartBringsWorkersToTheFirstView) {
  World world({.np = 4});
  world.happens(ListChanged{{{"a", 2}, {"b", 4}}});
  world.happens(ListChanged{{{"b", 4}, {"c", 1}}});
  EXPECT_THAT(world.started, ElementsAre("c 2: 1 of 1"));
  EXPECT_EQ(world.expected, 5);
  world.happens(AgentEnded{"a", code(75), ""});
  EXPECT_EQ(world.expected, 3);
  world.passes(Milliseconds(5000));
  world.runs();
  world.happens(Counted{{{"b", 2}, {"c", 1}}, {}, true});
  EXPECT_EQ(world.added, 1);
}

/// The first view may have been too short to be seen, and smaller than it was to be.
TEST(HostSupervision, KnownWorkersAreThoseThatWereMembers) {
  rendezvous::StatusReply last;
  last.view.members.resize(2);
  last.view.members[0].label = "slot-1.0";
  last.view.members[1].label = "slot-1.1";
  EXPECT_EQ(known_workers(last), 2);
  EXPECT_EQ(missing_workers(known_workers(last), last), "");
  last.departed.push_back({.label = "slot-2.0", .how = "lost", .why = ""});
  last.departed.push_back({.label = "slot-1.0", .how = "finished", .why = ""});
  EXPECT_EQ(known_workers(last), 3);
  EXPECT_THAT(missing_workers(known_workers(last), last),
              HasSubstr("began with 3 workers and ended with 2: worker slot-2.0 was lost"));
}

}  // namespace
}  // namespace elastic::hosts
