#include "collectives/model/price.hpp"

#include <gtest/gtest.h>

#include "model_fixture.hpp"

namespace elastic::model {
namespace {

using plan::AllreduceAlgorithm;

constexpr std::size_t kMib = std::size_t{1} << 20;

plan::Elements floats(std::size_t bytes) {
  return {bytes / 4, 4};
}

double seconds(const Network& network, const Job& job, AllreduceAlgorithm algorithm,
               std::size_t bytes) {
  return price(network, job, algorithm, floats(bytes)).seconds;
}

TEST(Price, UsesNoMoreFlowsThanHelp) {
  Network network = plain_network();
  EXPECT_EQ(tuned_job(network, blocks(4, 1), 0).flows, 1);
  network.line.flow_rate = network.line.rate / 4;
  EXPECT_EQ(tuned_job(network, blocks(4, 1), 0).flows, 4);
  EXPECT_EQ(tuned_job(network, blocks(4, 8), 0).flows, 1) << "a rank of eight needs an eighth";
  EXPECT_EQ(tuned_job(network, blocks(4, 1), 3).flows, 3);
}

TEST(Price, LargeTensorsEndWithABarrier) {
  const Network network = plain_network();
  Job job = tuned_job(network, blocks(4, 1), 1);
  job.segment_bytes = kMib;
  // Six hops of 64 KiB, and two of the barrier.
  EXPECT_NEAR(seconds(network, job, AllreduceAlgorithm::kRing, kMib / 4),
              6 * (65'600e-9 + 10e-6) + 2 * 10e-6, 1e-6);
  EXPECT_NEAR(seconds(network, job, AllreduceAlgorithm::kRing, kMib / 16), 6 * (16'448e-9 + 10e-6),
              1e-6);
}

TEST(Price, TheCheapestIsNoDearerThanAnyOther) {
  const Network network = plain_network();
  const Job job = tuned_job(network, blocks(128, 1), 1);
  for (const std::size_t bytes : {std::size_t{64}, kMib, 256 * kMib}) {
    const auto best = cheapest(network, job, floats(bytes));
    for (const auto other : {AllreduceAlgorithm::kDoubling, AllreduceAlgorithm::kRing,
                             AllreduceAlgorithm::kCirculant}) {
      EXPECT_LE(seconds(network, job, best, bytes), seconds(network, job, other, bytes))
          << plan::name(best) << " and " << plan::name(other) << ", " << bytes << " bytes";
    }
  }
  EXPECT_EQ(cheapest(network, job, floats(64)), AllreduceAlgorithm::kDoubling);
  EXPECT_EQ(cheapest(network, job, floats(kMib)), AllreduceAlgorithm::kCirculant);
}

/// Whatever the library chooses, the model does not know much better. It knows of no congestion,
/// for which two_shot is not chosen between hosts.
TEST(Price, TheChosenAlgorithmIsNearlyTheCheapest) {
  const Network network = plain_network();
  for (const int hosts : {3, 20, 32, 100, 256}) {
    const Job job = tuned_job(network, blocks(hosts, 1), 1);
    for (std::size_t bytes = 256 * 1024; bytes <= 1024 * kMib; bytes *= 16) {
      const auto best = cheapest(network, job, floats(bytes));
      EXPECT_LE(seconds(network, job, chosen(job, bytes), bytes),
                1.15 * seconds(network, job, best, bytes))
          << hosts << " hosts, " << bytes << " bytes: " << plan::name(best);
    }
  }
}

}  // namespace
}  // namespace elastic::model
