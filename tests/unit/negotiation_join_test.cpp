// The negotiation of ranks of which some have joined: they have no more data.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/negotiation_simulator.hpp"

namespace elastic::coordinator {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Program = NegotiationSimulator::Program;

TensorRequest call_of_kind(RequestKind kind, const std::string& name) {
  return {name, kind, ReduceOp::kSum, {{DType::kF32, 0}}};
}

/// `program` so many times, and then a join.
Program steps(const Program& program, std::size_t count) {
  Program all;
  for (std::size_t step = 0; step < count; ++step) {
    all.insert(all.end(), program.begin(), program.end());
  }
  all.push_back(kJoin);
  return all;
}

/// How often a name was in an order.
std::size_t runs_of(const std::vector<std::string>& history, const std::string& name) {
  std::size_t runs = 0;
  for (const std::string& order : history) {
    if (("+" + order + "+").find("+" + name + "+") != std::string::npos) ++runs;
  }
  return runs;
}

TEST(NegotiationJoin, GoesOnWithoutTheRanksThatHaveJoined) {
  const auto program = varied_program(9);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const std::size_t ranks = 1 + random() % 9;
    NegotiationSimulator simulator(static_cast<int>(ranks), 60, seed, links_all(seed));
    if (seed % 3 == 0) simulator.let_time_pass_at_random();
    for (int epoch = 0; epoch < 3; ++epoch) {
      const std::size_t longest = random() % ranks;
      std::vector<Program> programs;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        programs.push_back(steps(program, rank == longest ? 4 : random() % 4));
      }
      simulator.begin_with(programs);
      ASSERT_TRUE(simulator.finish());
      const auto history = simulator.take_history();
      EXPECT_EQ(history.back(), "join " + std::to_string(longest));
      EXPECT_THAT(history, Not(Contains(StartsWith("!"))));
      for (const TensorRequest& request : program) EXPECT_EQ(runs_of(history, request.name), 4);
    }
  }
}

TEST(NegotiationJoin, KeepsTheBucketsOfTheStepsBefore) {
  const Program program = {floats("a", 1), floats("b", 1), floats("c", 1)};
  for (const bool leader : {false, true}) {
    NegotiationSimulator simulator(3, 8, 1);
    simulator.step(program);
    ASSERT_THAT(as_set(simulator.take_history()), ElementsAre("a+b", "c"));
    simulator.step_with({steps(program, leader ? 0 : 1), steps(program, 1), {kJoin}});
    EXPECT_THAT(as_set(simulator.take_history()), ElementsAre("a+b", "c", StartsWith("join")));
    simulator.step(program);
    EXPECT_THAT(as_set(simulator.take_history()), ElementsAre("a+b", "c"));
  }
}

TEST(NegotiationJoin, FusesWhatTheOthersSubmitTogetherIfTheLeaderHasJoined) {
  NegotiationSimulator simulator(2, 100, 1);
  simulator.begin_with({{kJoin}, {}});
  EXPECT_FALSE(simulator.advance(100));
  EXPECT_TRUE(simulator.at(1).submit(floats("a", 1)).ok());
  EXPECT_TRUE(simulator.at(1).submit(floats("b", 1)).ok());
  for (RanksNote& note : simulator.at(1).take_outgoing()) {
    ASSERT_TRUE(simulator.at(0).on_note({1, 1}, note.bytes).ok());
  }
  const auto orders = simulator.at(0).take_orders();
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_THAT(*orders.front().requests, SizeIs(2));
  EXPECT_TRUE(orders.front().is_neutral);
}

TEST(NegotiationJoin, EndsWhenTheLastRankThatHasNotJoinedDies) {
  for (const std::size_t dead : {0U, 1U, 2U}) {
    NegotiationSimulator simulator(3, 8, 1);
    std::vector<Program> programs(3, Program{kJoin});
    programs[dead] = {};
    simulator.begin_with(programs);
    EXPECT_FALSE(simulator.advance(1000));
    std::vector<std::size_t> survivors = {0, 1, 2};
    survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(dead));
    simulator.change_view(survivors, 0);
    ASSERT_TRUE(simulator.finish());
    EXPECT_THAT(simulator.take_history(), ElementsAre(StartsWith("join")));
  }
}

TEST(NegotiationJoin, GoesOnThroughDeathsAndWorkersThatComeToTheJob) {
  const auto program = varied_program(7);
  for (unsigned seed = 0; seed < 3 * kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    NegotiationSimulator simulator(6, 60, seed, links_all(seed));
    std::vector<Program> programs;
    for (std::size_t rank = 0; rank < 6; ++rank) programs.push_back(steps(program, random() % 4));
    simulator.begin_with(programs);
    for (int change = 0; change < 3; ++change) {
      simulator.advance(random() % 120);
      std::vector<std::size_t> survivors;
      for (std::size_t rank = 0; rank < simulator.size(); ++rank) {
        if (random() % 5 > 0) survivors.push_back(rank);
      }
      if (survivors.empty()) survivors.push_back(simulator.size() - 1);
      simulator.change_view(survivors, random() % 2);
    }
    ASSERT_TRUE(simulator.finish());
    const auto history = simulator.take_history();
    EXPECT_THAT(history, Not(Contains(StartsWith("!"))));
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), Not(IsEmpty()));
  }
}

TEST(NegotiationJoin, RefusesWhatNeedsTheDataOfAllRanks) {
  const TensorRequest gather = call_of_kind(kAllgatherRequest, "g");
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::size_t ranks = 2 + seed % 7;
    const std::size_t joined = seed / 3 % ranks;
    NegotiationSimulator simulator(static_cast<int>(ranks), 8, seed, links_all(seed));
    if (seed % 2 == 0) simulator.step({gather, floats("a", 1)});  // known buckets
    simulator.take_history();
    std::vector<Program> programs(ranks, Program{gather, floats("a", 1), kJoin});
    programs[joined] = {kJoin};
    simulator.step_with(programs);
    const auto history = simulator.take_history();
    EXPECT_THAT(history,
                Contains(AllOf(StartsWith("!"), HasSubstr("'g'"),
                               HasSubstr("rank " + std::to_string(joined) + " has called join"))));
    EXPECT_THAT(history, Contains("a"));
    simulator.step({gather, floats("a", 1)});
    EXPECT_THAT(simulator.take_history(), Each(Not(StartsWith("!"))));
  }
}

TEST(NegotiationJoin, NamesTwoRanksThatDifferWhereTheLeaderHasJoined) {
  NegotiationSimulator simulator(4, 8, 1);
  simulator.step_with(
      {{kJoin}, {floats("a", 1), kJoin}, {floats("a", 2), kJoin}, {floats("a", 1), kJoin}});
  const auto history = simulator.take_history();
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_THAT(history.front(), HasSubstr("rank 1 submitted allreduce of 1 f32, sum; rank 2 "
                                         "submitted allreduce of 2 f32, sum"));
}

TEST(NegotiationJoin, TakesPartInCallsOfGroups) {
  const auto program = with_group_calls(varied_program(8), 4);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(6, 60, seed, links_all(seed));
    std::vector<Program> programs(6, steps(program, 1));
    programs[seed % 6] = {kJoin};
    simulator.step_with(programs);
    const auto history = simulator.take_history();
    EXPECT_THAT(history, Each(Not(StartsWith("!"))));
    for (const TensorRequest& request : program) EXPECT_EQ(runs_of(history, request.name), 1);
  }
}

TEST(NegotiationJoin, RefusesOtherCallsOfAGroupWithARankThatHasJoined) {
  const TensorRequest call = call_of_kind(kUnnamedRequest, "even/#1");
  NegotiationSimulator simulator(4, 60, 1);
  simulator.step_with({{kJoin}, {kJoin}, {call, kJoin}, {kJoin}});
  EXPECT_THAT(
      simulator.take_history(),
      ElementsAre(HasSubstr("'even/#1' (call without a name): rank 0 has called"), "join 2"));
}

TEST(NegotiationJoin, SubmitsNothingUntilItEnds) {
  Negotiator negotiator(8);
  negotiator.restart(1, 2);
  ASSERT_TRUE(negotiator.join(1).ok());
  EXPECT_EQ(negotiator.join(1).code(), Code::kInvalidArgument);
  EXPECT_EQ(negotiator.submit(floats("a", 1)).code(), Code::kInvalidArgument);
  EXPECT_EQ(negotiator.submit(GroupRequest{floats("a", 1), {0, 1}}).code(), Code::kInvalidArgument);
}

TEST(NegotiationJoin, OfARankThatHasNotJoinedIsNotEnded) {
  Negotiator follower(8);
  follower.restart(1, 2);
  NoteWriter writer;
  writer.add(EndJoin{0});
  EXPECT_EQ(follower.on_note({0, 1}, writer.take().front()).code(), Code::kProtocol);
  Negotiator leader(8);
  leader.restart(0, 3);
  writer.add(Joined{1});
  const auto note = writer.take().front();
  EXPECT_TRUE(leader.on_note({1, 1}, note).ok());
  EXPECT_EQ(leader.on_note({1, 1}, note).code(), Code::kProtocol);
}

TEST(JoinedRanksTest, TheLastIsOfTheLatestGeneration) {
  JoinedRanks joined;
  joined.restart(4);
  EXPECT_FALSE(joined.any());
  ASSERT_TRUE(joined.add(2, 7).ok());
  ASSERT_TRUE(joined.add(0, 5).ok());
  EXPECT_EQ(joined.last(), 2);
  ASSERT_TRUE(joined.add(3, 7).ok());
  EXPECT_EQ(joined.last(), 3);
  EXPECT_FALSE(joined.all());
  ASSERT_TRUE(joined.add(1, 6).ok());
  EXPECT_TRUE(joined.all());
  EXPECT_EQ(joined.last(), 3);
}

// A leader that submits what its followers do has the result of an order after them.
TEST(NegotiationJoin, SubmitsAgainWhatAFollowerSubmittedBeforeTheResultWasHere) {
  Negotiator leader(8);
  leader.restart(0, 2);
  ASSERT_TRUE(leader.join(1).ok());
  NoteWriter writer;
  writer.add(SubmitByName{floats("a", 1)});
  ASSERT_TRUE(leader.on_note({1, 1}, writer.take().front()).ok());
  auto orders = leader.take_orders();
  ASSERT_THAT(orders, SizeIs(1));
  writer.add(SubmitByName{floats("a", 1)});
  ASSERT_TRUE(leader.on_note({1, 1}, writer.take().front()).ok());
  EXPECT_THAT(leader.take_orders(), IsEmpty());
  ASSERT_TRUE(leader.completed(orders.front()).ok());
  EXPECT_THAT(leader.take_orders(), SizeIs(1));
}

}  // namespace
}  // namespace elastic::coordinator
