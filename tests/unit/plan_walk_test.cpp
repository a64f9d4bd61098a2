#include "collectives/model/plan_walk.hpp"

#include <cstddef>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/barrier.hpp"
#include "model_fixture.hpp"

namespace elastic::model {
namespace {

using plan::Builder;
using plan::Hosts;
using plan::Plan;

constexpr std::size_t kMb = 1'000'000;                // a millisecond on the plain network's lines
constexpr std::size_t kWhole = std::size_t{1} << 40;  // segments: each block is one message
/// 64 bytes of a frame for each of some messages.
constexpr double kFrames = 2e-6;

/// Rank 0 sends to rank 1 some messages, one by one.
Plan one_way(int rank, std::size_t bytes, int messages) {
  Builder build;
  for (int i = 0; i < messages; ++i) {
    if (rank == 0) build.send(1, data(bytes));
    if (rank == 1) build.receive(0, data(bytes));
  }
  return build.take();
}

TEST(PlanWalk, AMessageTakesItsLatencyAndItsBytes) {
  PlanWalk walk(plain_network(), blocks(2, 1), 1, {[](int rank) { return one_way(rank, kMb, 1); }});
  // The sender is done a latency earlier than the receiver: a mean of 1.005 ms.
  EXPECT_NEAR(walk.run(1).front(), 1.005e-3, kFrames);
  EXPECT_NEAR(walk.busy(Fabric::Kind::kLine), 1000.0 / 1010, 0.01);
}

TEST(PlanWalk, TheLatenciesOfMessagesOnALinkOverlap) {
  const double time =
      seconds(plain_network(), blocks(2, 1), [](int rank) { return one_way(rank, kMb, 10); });
  EXPECT_NEAR(time, 10.005e-3, kFrames);
}

/// Every rank of host 0 sends to its own peer on host 1.
Plan side_by_side(int rank, int ranks_each) {
  Builder build;
  if (rank < ranks_each) build.send(rank + ranks_each, data(kMb));
  if (rank >= ranks_each) build.receive(rank - ranks_each, data(kMb));
  return build.take();
}

TEST(PlanWalk, RanksOfAHostShareItsLine) {
  const double time =
      seconds(plain_network(), blocks(2, 4), [](int rank) { return side_by_side(rank, 4); });
  EXPECT_NEAR(time, 4.005e-3, kFrames);
}

TEST(PlanWalk, AFlowGetsNoMoreThanItsLimit) {
  Network network = plain_network();
  network.line.flow_rate = 0.1e9;
  const auto plan = [](int rank) { return one_way(rank, kMb, 1); };
  EXPECT_NEAR(seconds(network, blocks(2, 1), plan, 1), 10.005e-3, kFrames);
  EXPECT_NEAR(seconds(network, blocks(2, 1), plan, 4), 2.505e-3, kFrames);
  EXPECT_NEAR(seconds(network, blocks(2, 1), plan, 16), 1.005e-3, kFrames) << "the line's own rate";
  // Four ranks with a flow each have four flows as well.
  EXPECT_NEAR(seconds(network, blocks(2, 4), [](int rank) { return side_by_side(rank, 4); }),
              10.005e-3, kFrames);
}

TEST(PlanWalk, ABurstPassesFaster) {
  Network network = plain_network();
  network.line.burst = 1e6;
  network.line.burst_rate = 10e9;
  // Credit lasts for 1 MB / (10 - 1 GB/s) = 111 us and 1.11 MB; the other 0.89 MB take 0.89 ms.
  const auto plan = [](int rank) { return one_way(rank, 2 * kMb, 1); };
  EXPECT_NEAR(seconds(network, blocks(2, 1), plan), 1.005e-3, kFrames);
  // Call after call nothing is left of it.
  PlanWalk walk(network, blocks(2, 1), 1, {plan});
  const auto ends = walk.run(5);
  EXPECT_NEAR(ends[4] - ends[3], 2e-3, 0.05e-3);
}

TEST(PlanWalk, AThreadSendsReceivesAndReducesInTurn) {
  Network network = plain_network();
  network.line.rate = 100e9;
  network.processor = {.message = 5e-6, .send = 1e-9, .receive = 2e-9, .reduce = 0.5e-9};
  const auto exchange = [](int rank) {
    Builder build;
    build.send(1 - rank, data(kMb));
    build.receive_reduce(1 - rank, data(kMb), data(kMb));
    return build.take();
  };
  // 3.5 ns for each byte, two messages, and the latency.
  EXPECT_NEAR(seconds(network, blocks(2, 1), exchange), 3.5e-3 + 10e-6 + 10e-6, kFrames);
}

TEST(PlanWalk, CoresAreSharedByTheRanksOfAHostAndMemoryToo) {
  Network network = plain_network();
  network.host.latency = 1e-6;
  network.processor.copy = 1e-9;
  const auto plan = [](int rank) {
    Builder build;
    if (rank % 2 == 0) build.send(rank + 1, data(kMb));
    if (rank % 2 == 1) build.receive(rank - 1, data(kMb));
    return build.take();
  };
  EXPECT_NEAR(seconds(network, Hosts::one(4), plan), 1.0005e-3, kFrames);
  network.host.cores = 2;
  EXPECT_NEAR(seconds(network, Hosts::one(4), plan), 2.0005e-3, kFrames) << "four threads";
  network.host = {.memory_rate = 2e9, .latency = 1e-6};
  // Two messages, each read and written at both ends: 8 MB.
  EXPECT_NEAR(seconds(network, Hosts::one(4), plan), 4.0005e-3, kFrames);
  network.host = {.cores = 2, .latency = 1e-6};
  network.hosts_share_cores = true;
  EXPECT_NEAR(seconds(network, blocks(4, 2), plan), 4.0005e-3, kFrames) << "eight threads";
}

TEST(PlanWalk, WithMoreRanksThanCoresAMessageWaitsForTurns) {
  Network network = plain_network();
  network.host = {.cores = 2, .turn = 1e-3};
  network.hosts_share_cores = true;
  const auto doubling = [](int rank) { return plan::recursive_doubling_allreduce(rank, 8, 8); };
  // Three hops, in each of which three ranks have their turns on the core before.
  EXPECT_NEAR(seconds(network, Hosts::one_rank_each(8), doubling), 3 * 3.01e-3, kFrames);
  network.hosts_share_cores = false;
  EXPECT_NEAR(seconds(network, Hosts::one_rank_each(8), doubling), 3 * 10e-6, kFrames);
}

TEST(PlanWalk, ARingTakesTwiceItsLengthInLatenciesAndParts) {
  for (const int ranks : {2, 3, 8, 64}) {
    const auto count = static_cast<std::size_t>(ranks) * 16 * 1000;
    const auto ring = [&](int rank) {
      return plan::ring_allreduce(rank, ranks, {count, 4}, kWhole);
    };
    const double part = static_cast<double>(count * 4) / ranks / 1e9;
    EXPECT_NEAR(seconds(plain_network(), Hosts::one_rank_each(ranks), ring),
                2 * (ranks - 1) * (10e-6 + part + 64e-9), 1e-9)
        << ranks << " ranks";
  }
}

TEST(PlanWalk, ShortSegmentsHideTheLatencyOfARing) {
  constexpr int kRanks = 8;
  const plan::Elements elements{kRanks * kMb / 4, 4};
  const auto ring = [&](int rank) {
    return plan::ring_allreduce(rank, kRanks, elements, kMb / 16);
  };
  const double bytes = 2 * (kRanks - 1) * 1e-3;  // of 14 parts with 1 ms each
  const double time = seconds(plain_network(), Hosts::one_rank_each(kRanks), ring);
  EXPECT_GT(time, bytes);
  EXPECT_LT(time, bytes + 2 * 10e-6 + 14 * 16 * 64e-9 + 1e-6);
}

TEST(PlanWalk, DoublingSendsAllOfTheDataInEachHop) {
  const auto doubling = [](int rank) { return plan::recursive_doubling_allreduce(rank, 16, kMb); };
  EXPECT_NEAR(seconds(plain_network(), Hosts::one_rank_each(16), doubling), 4 * 1.01e-3, kFrames);
}

TEST(PlanWalk, AHierarchySendsOnceForEachHost) {
  const Hosts hosts = blocks(4, 8);
  const plan::Elements elements{4 * 8 * kMb / 16, 4};
  const auto hierarchical = [&](int rank) {
    return plan::hierarchical_allreduce(rank, hosts, elements, kWhole);
  };
  // Inside the hosts nothing takes time. A ring of four, whose parts have 2 MB.
  EXPECT_NEAR(seconds(plain_network(), hosts, hierarchical), 6 * 2.01e-3, 6 * kFrames);
}

TEST(PlanWalk, HalvingSendsAsMuchAsARingInFewerHops) {
  for (const int hosts : {4, 7, 64}) {
    const auto count = static_cast<std::size_t>(hosts) * 16 * 1000;
    const auto circulant = [&](int rank) {
      return plan::circulant_allreduce(rank, Hosts::one_rank_each(hosts), {count, 4}, kWhole);
    };
    const double parts = 2.0 * (hosts - 1) * (16 * 1000 * 4 + 64) / 1e9;
    const double time = seconds(plain_network(), Hosts::one_rank_each(hosts), circulant);
    const int hops = hosts == 4 ? 4 : hosts == 7 ? 6 : 12;
    EXPECT_LE(time, parts + hops * 10e-6 + 1e-9) << hosts << " hosts";
    EXPECT_GE(time, parts) << hosts << " hosts";
  }
}

TEST(PlanWalk, ARankBeginsItsNextPlanWhenItHasCompletedTheLast) {
  const auto barrier = [](int rank) { return plan::dissemination_barrier(rank, 8); };
  const auto ends =
      PlanWalk(plain_network(), Hosts::one_rank_each(8), 1, {barrier, barrier}).run(3);
  ASSERT_EQ(ends.size(), 3U);
  // Three hops each.
  EXPECT_NEAR(ends[0], 60e-6, kFrames);
  EXPECT_NEAR(ends[2], 180e-6, kFrames);
}

TEST(PlanWalk, RefusesAPlanThatWaitsForNothing) {
  const auto plan = [](int rank) {
    Builder build;
    if (rank == 1) build.receive(0, data(8));
    return build.take();
  };
  EXPECT_THROW(seconds(plain_network(), blocks(2, 1), plan), std::logic_error);
}

}  // namespace
}  // namespace elastic::model
