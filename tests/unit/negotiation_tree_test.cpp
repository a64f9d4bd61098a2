// The negotiation of many ranks, whose notes are gathered along a tree.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/negotiation_simulator.hpp"

namespace elastic::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Program = NegotiationSimulator::Program;

// Two buckets: "a" and "b", and "c".
const Program kProgram = {floats("a", 1), floats("b", 1), floats("c", 1)};
constexpr std::size_t kBucketBytes = 8;
constexpr std::size_t kBuckets = 2;

std::size_t height(std::size_t ranks) {
  return static_cast<std::size_t>(std::bit_width(ranks - 1));  // log2, rounded up
}

TEST(NegotiationTree, NoRankReadsMoreNotesThanTheTreeIsHigh) {
  for (const std::size_t ranks : {16U, 64U, 256U, 1000U}) {
    NegotiationSimulator simulator(static_cast<int>(ranks), kBucketBytes, 1, false);
    simulator.step(kProgram);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b", "c"));
    // Buckets are not known yet: names are submitted one by one.
    const std::size_t first = std::ranges::max(simulator.take_read_counts());
    EXPECT_LE(first, kProgram.size() * height(ranks) + kBuckets);
    simulator.take_note_counts();
    for (int step = 0; step < 2; ++step) {
      simulator.step(kProgram);
      EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b", "c"));
      const std::size_t most_read = std::ranges::max(simulator.take_read_counts());
      const std::size_t most_sent = std::ranges::max(simulator.take_note_counts());
      EXPECT_LE(most_read, kBuckets * height(ranks)) << ranks << " ranks";
      EXPECT_LE(most_sent, kBuckets * height(ranks)) << ranks << " ranks";
      RecordProperty("read_by_one_of_" + std::to_string(ranks), static_cast<int>(most_read));
    }
  }
}

TEST(NegotiationTree, RunsWhatAllRanksHaveWithAllRoutesAlike) {
  const auto program = varied_program(15);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const int ranks = 5 + static_cast<int>(seed % 14);
    NegotiationSimulator direct(ranks, 100, seed, true);
    NegotiationSimulator tree(ranks, 100, seed, false);
    std::mt19937 use(seed);
    for (int step = 0; step < 4; ++step) {
      Program part = program;
      std::erase_if(part, [&](const TensorRequest&) { return use() % 7 == 0; });
      if (step == 2) part.front().tensors.front().count = 50;
      direct.step(part);
      tree.step(part);
      ASSERT_EQ(as_set(tree.take_history()), as_set(direct.take_history())) << "step " << step;
    }
  }
}

TEST(NegotiationTree, NamesTheFirstRankThatDiffersWhereverItIs) {
  Program bad = kProgram;
  bad[1] = floats("b", 5);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::size_t ranks = 9 + seed % 12;
    const std::size_t first = 1 + seed % (ranks - 1);
    NegotiationSimulator simulator(static_cast<int>(ranks), kBucketBytes, seed, false);
    if (seed % 2 == 0) simulator.step(kProgram);  // in a known bucket, and in none yet
    simulator.take_history();
    std::vector<Program> programs(ranks, kProgram);
    programs[first] = programs[ranks - 1] = bad;
    simulator.step_with(programs);
    EXPECT_THAT(
        simulator.take_history(),
        UnorderedElementsAre("a", "c",
                             HasSubstr("'b': rank 0 submitted allreduce of 1 f32, sum; rank " +
                                       std::to_string(first) + " submitted")));
    simulator.step(kProgram);
    EXPECT_THAT(simulator.take_history(), ::testing::Not(::testing::Contains(HasSubstr("!"))));
  }
}

TEST(NegotiationTree, CompletesEverythingWhenSomeRanksTakeOthersForBlocked) {
  const auto program = varied_program(12);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(5 + static_cast<int>(seed % 12), 60, seed, false);
    simulator.let_followers_flush_at_random();
    simulator.let_time_pass_at_random();
    for (int step = 0; step < 3; ++step) {
      Program part = program;
      part.erase(part.begin() + static_cast<std::ptrdiff_t>(seed % part.size()));
      simulator.begin(step == 1 ? part : program);
      ASSERT_TRUE(simulator.finish());
      EXPECT_THAT(simulator.take_history(), ::testing::Not(::testing::Contains(HasSubstr("!"))));
    }
  }
}

TEST(NegotiationTree, GoesOnThroughDeathsAndJoins) {
  const auto program = varied_program(12);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    NegotiationSimulator simulator(18, 60, seed, false);
    simulator.step(program);
    const auto buckets = as_set(simulator.take_history());
    for (int step = 0; step < 3; ++step) {
      simulator.begin(program);
      simulator.advance(random() % 600);
      std::vector<std::size_t> survivors;
      for (std::size_t rank = 0; rank < simulator.size(); ++rank) {
        if (rank == 0 || random() % 8 > 0) survivors.push_back(rank);
      }
      simulator.change_view(survivors, random() % 4);
      ASSERT_TRUE(simulator.finish());
      ASSERT_EQ(as_set(simulator.take_history()), buckets) << "step " << step;
    }
  }
}

// Rank 3 submits "a" when it has the result of "b". Its notes pass rank 2.
TEST(NegotiationTree, SplitsABucketWhosePartsWaitForEachOther) {
  const Program both = {floats("a", 1), floats("b", 1)};
  for (const bool known : {false, true}) {
    NegotiationSimulator simulator(8, 100, 1, false);
    if (known) simulator.step(both);
    simulator.take_history();
    std::vector<Program> programs(8, both);
    programs[3] = {floats("b", 1)};
    simulator.begin_with(programs);
    EXPECT_FALSE(simulator.advance(1000));
    EXPECT_THAT(simulator.take_history(), IsEmpty());
    for (int second = 0; second < 4; ++second) {
      simulator.let_nothing_happen_for_long();
      simulator.advance(1000);
    }
    EXPECT_THAT(simulator.take_history(), ElementsAre("b"));
    simulator.submit(3, floats("a", 1));
    ASSERT_TRUE(simulator.finish());
    EXPECT_THAT(simulator.take_history(), ElementsAre("a"));
    simulator.step(both);  // and notes wait for each other again
    EXPECT_THAT(simulator.take_history(), SizeIs(2));
    simulator.take_read_counts();
    simulator.step(both);
    EXPECT_LE(std::ranges::max(simulator.take_read_counts()), 2 * height(8));
  }
}

}  // namespace
}  // namespace elastic::coordinator
