#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "elastic/global_batch.hpp"
#include "tests/unit/step_world.hpp"

namespace elastic::testing {
namespace {

struct Result {
  SampleAverage average;
  float gradient = 0;
  bfloat16 half;
};

/// Workers 1, 2, ... call it with sums over so many samples, each of which has the gradient 1 + the
/// worker's id.
std::vector<Result> average(const std::vector<std::uint64_t>& samples,
                            const std::vector<Loss>& losses = {}) {
  std::vector<WorkerId> workers;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) workers.push_back(rank + 1);
  StepWorld world(workers, losses);
  std::vector<Result> results(samples.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Result& mine = results[rank];
      mine.gradient = static_cast<float>((rank + 2) * samples[rank]);
      const std::vector<TensorView> tensors{view(std::span(&mine.gradient, 1)),
                                            view(std::span(&mine.half, 1))};
      try {
        mine.average =
            average_by_samples([&](std::span<const TensorView> all,
                                   ReduceOp op) { return world.allreduce(rank + 1, all, op); },
                               tensors, samples[rank]);
      } catch (const Death&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(SampleAverage, WeighsEverySampleAlike) {
  for (const Result& result : average({1, 3})) {
    EXPECT_EQ(result.gradient, (2 + 3 * 3) / 4.0F);  // not 2.5, the mean of the workers' means
    EXPECT_EQ(result.average.samples, 4U);
    EXPECT_EQ(result.average.contributors.size(), 2U);
  }
}

TEST(SampleAverage, DividesByWhatIsInTheSumWhenAWorkerIsLost) {
  const std::vector<Result> without = average({1, 3, 4}, {{0, 2, false}});
  EXPECT_EQ(without[0].gradient, (2 + 4 * 4) / 5.0F);
  EXPECT_EQ(without[2].average.samples, 5U);
  const std::vector<Result> with = average({1, 3, 4}, {{0, 2, true}});
  EXPECT_EQ(with[0].gradient, (2 + 3 * 3 + 4 * 4) / 8.0F);
}

/// Workers with unequal amounts of data: each goes on until all workers have used up theirs.
TEST(SampleAverage, TellsAllAlikeWhenTheLastHasUsedUpItsData) {
  const std::array<std::uint64_t, 3> data{5, 0, 9};
  std::uint64_t used = 0;
  for (std::uint64_t step = 0;; ++step) {
    std::vector<std::uint64_t> batches;
    for (const std::uint64_t its : data) {
      batches.push_back(std::min<std::uint64_t>(2, its - std::min(its, 2 * step)));
    }
    const std::vector<Result> results = average(batches);
    for (const Result& result : results) {
      ASSERT_EQ(result.average.samples, results[0].average.samples);
      ASSERT_EQ(result.gradient, results[0].gradient);
    }
    used += results[0].average.samples;
    if (results[0].average.samples > 0) continue;
    EXPECT_EQ(results[0].gradient, 0);
    EXPECT_EQ(step, 5U);
    break;
  }
  EXPECT_EQ(used, 14U);
}

TEST(SampleAverage, RefusesWhatItCannotAverage) {
  const detail::GroupedAllreduce never = [](std::span<const TensorView>, ReduceOp) -> Contributors {
    ADD_FAILURE() << "called";
    return {};
  };
  std::vector<std::int32_t> whole(2);
  const std::vector<TensorView> tensors{view(std::span(whole))};
  EXPECT_THROW(average_by_samples(never, tensors, 1), Error);
  EXPECT_THROW(average_by_samples(never, {}, std::uint64_t{1} << 60), Error);
}

}  // namespace
}  // namespace elastic::testing
