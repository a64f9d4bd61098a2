#include "coordinator/negotiation.hpp"

#include <algorithm>
#include <array>
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

/// One float each.
Program tensors(std::vector<std::string> names) {
  Program program;
  for (std::string& name : names) program.push_back(floats(std::move(name), 1));
  return program;
}

Program without(Program program, const std::vector<std::string>& names) {
  std::erase_if(program, [&](const TensorRequest& request) {
    return std::find(names.begin(), names.end(), request.name) != names.end();
  });
  return program;
}

TEST(Negotiation, GivesTheSameBucketsInEveryStepWhateverTheTiming) {
  const Program program = varied_program(40);
  std::multiset<std::string> buckets;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(1 + static_cast<int>(seed % 9), 100, seed, links_all(seed));
    if (seed % 2 == 1) simulator.let_followers_flush_at_random();
    for (int step = 0; step < 6; ++step) {
      simulator.step(program);
      const auto now = as_set(simulator.take_history());
      if (buckets.empty()) buckets = now;
      ASSERT_EQ(now, buckets) << "step " << step;
    }
  }
  EXPECT_GT(buckets.size(), 5u);
  EXPECT_LT(buckets.size(), 40u);
}

TEST(Negotiation, CostsOneNotePerBucketAndRankOnceBucketsAreKnown) {
  Program program = tensors({});
  for (int i = 0; i < 161; ++i) program.push_back(floats("gradient" + std::to_string(i), 10));
  for (unsigned seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(4, 41 * 40, seed);
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), SizeIs(4));
    simulator.take_note_counts();
    simulator.step(program);
    const auto counts = simulator.take_note_counts();
    EXPECT_LE(counts[0], 4u * 3u);
    for (std::size_t rank = 1; rank < counts.size(); ++rank) EXPECT_LE(counts[rank], 4u);
  }
}

TEST(Negotiation, SendsNothingWhileIdleAndOneNoteForAllThatIsReadyTogether) {
  NegotiationSimulator simulator(2, 8, 1);
  const Program program = tensors({"a", "b", "c", "d"});
  simulator.step(program);
  Negotiator& leader = simulator.at(0);
  Negotiator& follower = simulator.at(1);
  EXPECT_THAT(leader.take_outgoing(), IsEmpty());
  EXPECT_THAT(follower.take_outgoing(), IsEmpty());
  for (const TensorRequest& request : program) {
    ASSERT_TRUE(leader.submit(request).ok());
    ASSERT_TRUE(follower.submit(request).ok());
  }
  const auto ready = follower.take_outgoing();
  ASSERT_THAT(ready, SizeIs(1));
  EXPECT_LE(ready[0].bytes.size(), 5u);
  ASSERT_TRUE(leader.on_note({1}, ready[0].bytes).ok());
  const auto run = leader.take_outgoing();
  ASSERT_THAT(run, SizeIs(1));
  EXPECT_LE(run[0].bytes.size(), 5u);
  EXPECT_THAT(leader.take_orders(), SizeIs(2));
}

TEST(Negotiation, DissolvesABucketOfWhichATensorIsNotUsed) {
  const Program all = tensors({"a", "b", "c", "d", "e", "f"});
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 12, seed, links_all(seed));
    simulator.step(all);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b+c", "d+e+f"));
    simulator.step(without(all, {"b", "f"}));
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+c+d", "e"));
    simulator.step(all);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+c+d", "e", "b+f"));
    simulator.step(without(all, {"a", "c", "d"}));  // a whole bucket is no reason for a new plan
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("e", "b+f"));
    simulator.step(all);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+c+d", "e", "b+f"));
  }
}

TEST(Negotiation, StaysTheSameOnAllTimingsWithRandomPartsOfAModel) {
  const Program all = varied_program(24);
  constexpr int kSteps = 12;
  std::vector<std::multiset<std::string>> expected;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(4, 60, seed, links_all(seed));
    std::mt19937 use(7);  // the same parts for every timing
    for (int step = 0; step < kSteps; ++step) {
      Program part = all;
      std::erase_if(part, [&](const TensorRequest&) { return use() % 5 == 0; });
      if (use() % 3 == 0) part.front().tensors.front().count = use() % 20;
      simulator.step(part);
      const auto buckets = as_set(simulator.take_history());
      if (seed == 0) expected.push_back(buckets);
      ASSERT_EQ(buckets, expected[static_cast<std::size_t>(step)]) << "step " << step;
    }
  }
}

TEST(Negotiation, PlansATensorOfAnotherShapeAnew) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 12, seed, links_all(seed));
    Program program = tensors({"a", "b", "c", "d"});
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b+c", "d"));
    program[1] = floats("b", 2);
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b", "c", "d"));
    program[3] = floats("d", 1, ReduceOp::kMin);
    simulator.step(program);
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b", "c", "d", "a+b", "c", "d"));
  }
}

TEST(Negotiation, MakesBucketsAnewForAnotherSize) {
  const Program program = tensors({"a", "b", "c", "d"});
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 12, seed, links_all(seed));
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b+c", "d"));
    simulator.at(0).set_bucket_bytes(8);
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b", "c+d"));
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(), UnorderedElementsAre("a+b", "c+d"));
  }
}

TEST(Negotiation, CompletesEverythingWhileTheSizeOfBucketsChangesInTheMiddleOfAStep) {
  const Program program = varied_program(40);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    NegotiationSimulator simulator(1 + static_cast<int>(seed % 5), 100, seed, links_all(seed));
    if (seed % 2 == 1) simulator.let_followers_flush_at_random();
    for (int step = 0; step < 6; ++step) {
      simulator.begin(program);
      while (!simulator.advance(random() % 30)) {
        if (random() % 3 == 0) simulator.at(0).set_bucket_bytes(random() % 300);
        if (random() % 10 == 0) break;
      }
      ASSERT_TRUE(simulator.finish());
      std::size_t completed = 0;
      for (const std::string& bucket : simulator.take_history()) {
        completed += 1 + static_cast<std::size_t>(std::count(bucket.begin(), bucket.end(), '+'));
      }
      ASSERT_EQ(completed, program.size());
    }
  }
}

TEST(Negotiation, KeepsGroupsTogether) {
  TensorRequest group = floats("group", 2);
  group.tensors.push_back({DType::kF64, 1});
  for (unsigned seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 16, seed, links_all(seed));
    const Program program = {floats("a", 1), group, floats("b", 1)};
    simulator.step(program);
    simulator.step(program);
    EXPECT_THAT(simulator.take_history(),
                UnorderedElementsAre("a", "group", "b", "a", "group", "b"));
  }
}

TEST(Negotiation, FailsATensorThatRanksSubmitDifferently) {
  const std::string text =
      "!tensor 'b': rank 0 submitted allreduce of 1 f32, sum; rank 2 submitted allreduce of 5 f32, "
      "sum";
  const Program good = tensors({"a", "b", "c", "d"});
  Program bad = good;
  bad[1] = floats("b", 5);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 12, seed, links_all(seed));
    const bool planned = seed % 2 == 0;
    if (planned) simulator.step(good);
    simulator.take_history();
    simulator.step_with({good, good, bad});
    const auto history = simulator.take_history();
    EXPECT_EQ(std::count(history.begin(), history.end(), text), 1)
        << ::testing::PrintToString(history);
    for (const char* name : {"a", "c", "d"}) {
      EXPECT_EQ(std::count_if(history.begin(), history.end(),
                              [&](const std::string& order) {
                                return order[0] != '!' && order.find(name) != std::string::npos;
                              }),
                1);
    }
    // The same name may be submitted again, without a mismatch.
    simulator.step(good);
    EXPECT_THAT(simulator.take_history(), ::testing::Not(::testing::Contains(HasSubstr("!"))));
  }
}

TEST(Negotiation, FailsAMismatchOfTheLeadersOwnMaking) {
  const Program good = tensors({"a", "b", "c"});
  Program bad = good;
  bad[0].op = ReduceOp::kMax;
  bad[2].tensors[0].dtype = DType::kI32;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 12, seed, links_all(seed));
    simulator.step(good);
    simulator.take_history();
    simulator.step_with({bad, good, good});
    EXPECT_THAT(
        simulator.take_history(),
        UnorderedElementsAre(HasSubstr("'a': rank 0 submitted allreduce of 1 f32, max; rank 1"),
                             "b", HasSubstr("1 i32, sum; rank 1 submitted")));
  }
}

TEST(Negotiation, RefusesANameThatIsUnderWay) {
  for (const int rank : {0, 1}) {
    Negotiator negotiator(100);
    negotiator.restart(rank, 2);
    EXPECT_TRUE(negotiator.submit(floats("conv1", 1)).ok());
    const Status again = negotiator.submit(floats("conv1", 1));
    EXPECT_EQ(again.code(), Code::kInvalidArgument);
    EXPECT_THAT(again.message(), HasSubstr("conv1"));
  }
}

TEST(Negotiation, WorksAlone) {
  Negotiator negotiator(8);
  EXPECT_TRUE(negotiator.submit(floats("early", 1)).ok());  // before there is a view
  negotiator.flush();
  negotiator.restart(0, 1);
  auto orders = negotiator.take_orders();
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_TRUE(negotiator.completed(orders[0]).ok());
  EXPECT_EQ(negotiator.completed(orders[0]).code(), Code::kInternal);
  EXPECT_TRUE(negotiator.submit(floats("early", 1)).ok());  // known: runs at once
  EXPECT_THAT(negotiator.take_orders(), SizeIs(1));
  EXPECT_THAT(negotiator.take_outgoing(), IsEmpty());
}

/// Everything `from` has to say reaches `to`.
void deliver(Negotiator& from, int from_rank, Negotiator& to) {
  for (const auto& note : from.take_outgoing())
    ASSERT_TRUE(to.on_note({from_rank}, note.bytes).ok());
}

void run_all(Negotiator& negotiator, std::size_t expected) {
  const auto orders = negotiator.take_orders();
  EXPECT_THAT(orders, SizeIs(expected));
  for (const OrderItem& order : orders) EXPECT_TRUE(negotiator.completed(order).ok());
}

TEST(Negotiation, LetsAReportAndADissolutionCross) {
  Negotiator leader(100);
  Negotiator follower(100);
  leader.restart(0, 2);
  follower.restart(1, 2);
  for (Negotiator* rank : {&leader, &follower}) {
    for (const auto& request : tensors({"a", "b"})) ASSERT_TRUE(rank->submit(request).ok());
    rank->flush();
  }
  deliver(follower, 1, leader);
  deliver(leader, 0, follower);
  run_all(leader, 1);
  run_all(follower, 1);

  ASSERT_TRUE(follower.submit(floats("a", 1)).ok());
  ASSERT_TRUE(follower.submit(floats("b", 1)).ok());
  ASSERT_TRUE(leader.submit(floats("a", 1)).ok());
  leader.flush();  // dissolves
  const auto report = follower.take_outgoing();
  deliver(leader, 0, follower);  // crosses the report
  for (const auto& note : report) ASSERT_TRUE(leader.on_note({1}, note.bytes).ok());
  EXPECT_THAT(leader.take_orders(), IsEmpty());
  deliver(follower, 1, leader);
  deliver(leader, 0, follower);
  run_all(leader, 1);
  run_all(follower, 1);
  ASSERT_TRUE(leader.submit(floats("b", 1)).ok());
  leader.flush();
  deliver(leader, 0, follower);
  run_all(leader, 1);
  run_all(follower, 1);
}

TEST(Negotiation, NeverClosesBucketsForAFollowersFlushButWhenForced) {
  Negotiator leader(100);
  Negotiator follower(100);
  leader.restart(0, 2);
  follower.restart(1, 2);
  ASSERT_TRUE(leader.submit(floats("a", 1)).ok());
  ASSERT_TRUE(follower.submit(floats("a", 1)).ok());
  follower.flush();
  leader.force_flush();  // the follower does not have it yet
  EXPECT_TRUE(leader.submit(floats("b", 1)).ok());
  deliver(follower, 1, leader);
  EXPECT_THAT(leader.take_orders(), IsEmpty());
  ASSERT_TRUE(follower.submit(floats("b", 1)).ok());
  deliver(follower, 1, leader);
  EXPECT_THAT(leader.take_orders(), IsEmpty());
  leader.force_flush();  // all ranks have it, and the bucket is still open
  const auto orders = leader.take_orders();
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_THAT(*orders[0].requests, SizeIs(2));  // one bucket
  deliver(leader, 0, follower);
  run_all(follower, 1);
}

/// One leader and two followers, by hand.
struct Three {
  Three() {
    for (int rank = 0; rank < 3; ++rank) ranks[static_cast<std::size_t>(rank)].restart(rank, 3);
  }
  void submit(std::size_t rank, const std::string& name) {
    ASSERT_TRUE(ranks[rank].submit(floats(name, 1)).ok());
  }
  void exchange() {
    for (int round = 0; round < 3; ++round) {
      for (std::size_t rank = 1; rank < 3; ++rank) {
        deliver(ranks[rank], static_cast<int>(rank), ranks[0]);
      }
      for (const auto& note : ranks[0].take_outgoing()) {
        for (std::size_t follower = 1; follower < 3; ++follower) {
          ASSERT_TRUE(ranks[follower].on_note({0}, note.bytes).ok());
        }
      }
    }
  }
  /// The names that all ranks run next, and complete.
  std::vector<std::string> run() {
    std::vector<std::string> names;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      std::vector<std::string> here;
      for (const OrderItem& order : ranks[rank].take_orders()) {
        for (const auto& request : *order.requests) here.push_back(request->name);
        EXPECT_TRUE(ranks[rank].completed(order).ok());
      }
      if (rank > 0) {
        EXPECT_EQ(here, names) << "rank " << rank;
      }
      names = here;
    }
    return names;
  }
  void nothing_happens_for_long() {
    for (Negotiator& rank : ranks) rank.force_flush();
    exchange();
    for (Negotiator& rank : ranks) rank.force_flush();
    exchange();
  }

  std::array<Negotiator, 3> ranks{Negotiator(100), Negotiator(100), Negotiator(100)};
};

TEST(Negotiation, SplitsABucketWhosePartsWaitForEachOther) {
  Three job;
  job.submit(0, "a");
  job.submit(0, "b");
  job.submit(2, "a");
  job.submit(2, "b");
  job.submit(1, "b");  // submits "a" when it has the result of "b"
  for (Negotiator& rank : job.ranks) rank.flush();
  job.exchange();
  EXPECT_THAT(job.run(), IsEmpty());
  job.nothing_happens_for_long();
  EXPECT_THAT(job.run(), ElementsAre("b"));
  job.submit(1, "a");
  job.exchange();
  EXPECT_THAT(job.run(), ElementsAre("a"));
}

TEST(Negotiation, SplitsAKnownBucketToo) {
  Three job;
  const auto submit_all = [&](std::size_t rank) {
    job.submit(rank, "a");
    job.submit(rank, "b");
    job.ranks[rank].flush();
  };
  for (std::size_t rank = 0; rank < 3; ++rank) submit_all(rank);
  job.exchange();
  EXPECT_THAT(job.run(), ElementsAre("a", "b")) << "one bucket";
  submit_all(0);
  submit_all(2);
  job.submit(1, "b");
  job.ranks[1].flush();
  job.exchange();
  EXPECT_THAT(job.run(), IsEmpty());
  job.nothing_happens_for_long();
  EXPECT_THAT(job.run(), ElementsAre("b"));
  job.submit(1, "a");
  job.exchange();
  EXPECT_THAT(job.run(), ElementsAre("a"));
}

TEST(Negotiation, KeepsTheBucketOfARankThatIsOnlySlow) {
  Three job;
  for (const std::size_t rank : {0U, 2U}) {
    job.submit(rank, "a");
    job.submit(rank, "b");
    job.ranks[rank].flush();
  }
  job.submit(1, "b");  // and goes on computing
  job.exchange();
  job.nothing_happens_for_long();
  EXPECT_THAT(job.run(), IsEmpty());
  job.submit(1, "a");
  job.exchange();
  EXPECT_THAT(job.run(), ElementsAre("a", "b"));
}

TEST(Negotiation, ForgetsBucketsThatAreNotUsedAnyMore) {
  Negotiator leader(4);
  Negotiator follower(4);
  leader.restart(0, 2);
  follower.restart(1, 2);
  for (std::size_t i = 0; i < Negotiator::kMaxPlannedBuckets + 100; ++i) {
    for (const std::string& name : {std::string("loss"), "loss of step " + std::to_string(i)}) {
      for (Negotiator* rank : {&leader, &follower}) {
        ASSERT_TRUE(rank->submit(floats(name, 1)).ok());
      }
    }
    leader.flush();
    deliver(leader, 0, follower);  // dissolutions
    deliver(follower, 1, leader);
    deliver(leader, 0, follower);
    run_all(leader, 2);
    run_all(follower, 2);
  }
}

TEST(Negotiation, RefusesNotesThatMakeNoSense) {
  Negotiator leader(100);
  Negotiator follower(100);
  leader.restart(0, 2);
  follower.restart(1, 2);
  const auto note = [](const NoteItem& item) {
    NoteWriter writer;
    writer.add(item);
    return writer.take().at(0);
  };
  const auto code = [](const Status& status) { return status.code(); };
  EXPECT_EQ(code(leader.on_note({0}, note(BucketReady{1}))), Code::kProtocol);  // from itself
  EXPECT_EQ(code(leader.on_note({2}, note(BucketReady{1}))),
            Code::kProtocol);  // from no rank of the view
  EXPECT_EQ(code(leader.on_note({1}, note(BucketReady{1}))), Code::kProtocol);  // unknown bucket
  EXPECT_EQ(code(leader.on_note({1}, note(coordinator::Run{1}))), Code::kProtocol);
  EXPECT_TRUE(leader.on_note({1}, note(SubmitByName{floats("a", 1)})).ok());
  EXPECT_EQ(code(leader.on_note({1}, note(SubmitByName{floats("a", 1)}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(coordinator::Run{1}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(Dissolve{1}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(Mismatch{"a", "text"}))), Code::kProtocol);
  EXPECT_TRUE(follower.on_note({0}, note(Define{2, tensors({"a", "b"})})).ok());
  EXPECT_EQ(code(follower.on_note({0}, note(Define{1, tensors({"c"})}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(Define{3, tensors({"a"})}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(Define{4, tensors({"c", "c"})}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(coordinator::Run{2}))), Code::kProtocol);
  EXPECT_EQ(code(follower.on_note({0}, note(BucketReady{2}))), Code::kProtocol);
}

}  // namespace
}  // namespace elastic::coordinator
