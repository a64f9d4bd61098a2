#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/model/plan_walk.hpp"
#include "collectives/model/symmetry.hpp"
#include "collectives/plan/make_allreduce.hpp"
#include "model_fixture.hpp"

namespace elastic::model {
namespace {

using plan::AllreduceAlgorithm;
using plan::Hosts;

constexpr std::size_t kSegment = 32 * 1024;

PlanOf plans(AllreduceAlgorithm algorithm, const Hosts& hosts, std::size_t count) {
  return [=, &hosts](int rank) {
    return plan::make_allreduce(algorithm, rank, hosts, {count, 4}, kSegment, kSegment);
  };
}

/// Something of everything that can be shared.
Network shared_network() {
  Network network = plain_network();
  network.line.flow_rate = 0.6e9;
  network.line.burst = 64e3;
  network.line.burst_rate = 3e9;
  network.host = {.cores = 3, .memory_rate = 20e9, .latency = 1e-6};
  network.processor = {.message = 2e-6,
                       .shared_message = 0.5e-6,
                       .send = 0.2e-9,
                       .receive = 0.3e-9,
                       .copy = 0.1e-9,
                       .reduce = 0.1e-9};
  return network;
}

TEST(ModelSymmetry, IsFoundWhereHostsDoTheSame) {
  const Hosts hosts = blocks(8, 4);
  const auto kind = [&](AllreduceAlgorithm algorithm, const Hosts& of) {
    return Symmetry::find(of, {plans(algorithm, of, 1 << 16)}).kind();
  };
  EXPECT_EQ(kind(AllreduceAlgorithm::kRing, hosts), Symmetry::Kind::kRing);
  EXPECT_EQ(kind(AllreduceAlgorithm::kHierarchical, hosts), Symmetry::Kind::kRing);
  EXPECT_EQ(kind(AllreduceAlgorithm::kTwoShot, hosts), Symmetry::Kind::kRing);
  EXPECT_EQ(kind(AllreduceAlgorithm::kDoubling, hosts), Symmetry::Kind::kFlip);
  EXPECT_EQ(kind(AllreduceAlgorithm::kDoubling, blocks(9, 1)), Symmetry::Kind::kNone)
      << "one rank stands for two";
  EXPECT_EQ(kind(AllreduceAlgorithm::kRing, Hosts({0, 0, 1})), Symmetry::Kind::kNone);
  EXPECT_EQ(kind(AllreduceAlgorithm::kRing, Hosts::one(4)), Symmetry::Kind::kNone);
}

TEST(ModelSymmetry, OneHostTakesTheTimeOfAll) {
  for (const bool shared_cores : {false, true}) {
    Network network = shared_network();
    network.hosts_share_cores = shared_cores;
    for (const AllreduceAlgorithm algorithm :
         {AllreduceAlgorithm::kRing, AllreduceAlgorithm::kHierarchical,
          AllreduceAlgorithm::kDoubling, AllreduceAlgorithm::kTwoShot,
          AllreduceAlgorithm::kCirculant}) {
      const Hosts hosts = blocks(8, 4);
      const std::vector<PlanOf> of_ranks{plans(algorithm, hosts, 1 << 16)};
      PlanWalk one(network, hosts, 2, of_ranks);
      PlanWalk all(network, hosts, 2, of_ranks, Symmetry(hosts));
      ASSERT_NE(one.symmetry().kind(), Symmetry::Kind::kNone);
      // The ranks that are not walked have cut messages.
      const double most = algorithm == AllreduceAlgorithm::kCirculant ? 0.03 : 1e-4;
      const auto expected = all.run(3);
      const auto ends = one.run(3);
      for (std::size_t call = 0; call < ends.size(); ++call) {
        EXPECT_NEAR(ends[call] / expected[call], 1, most)
            << plan::name(algorithm) << ", shared cores " << shared_cores;
      }
    }
  }
}

/// Parts that differ by an element, of hosts that are no power of two.
TEST(ModelSymmetry, UnequalPartsHardlyMatter) {
  const Hosts hosts = blocks(7, 3);
  const std::vector<PlanOf> of_ranks{plans(AllreduceAlgorithm::kHierarchical, hosts, 100'003)};
  PlanWalk one(shared_network(), hosts, 1, of_ranks);
  PlanWalk all(shared_network(), hosts, 1, of_ranks, Symmetry(hosts));
  ASSERT_EQ(one.symmetry().kind(), Symmetry::Kind::kRing);
  EXPECT_NEAR(one.run(1).front() / all.run(1).front(), 1, 0.01);
}

}  // namespace
}  // namespace elastic::model
