#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/barrier.hpp"
#include "collectives/plan/broadcast.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/plan/exchange.hpp"
#include "collectives/plan/neighbours.hpp"
#include "collectives/plan/ring.hpp"
#include "plan_checks.hpp"
#include "plan_simulator.hpp"
#include "tests/slowness.hpp"

namespace elastic::plan {
namespace {

constexpr int kMaxSize = 9;
constexpr std::size_t kSegment = 48;

Hosts hosts(int size, int (*host_of)(int rank)) {
  std::vector<int> of_rank;
  for (int rank = 0; rank < size; ++rank) of_rank.push_back(host_of(rank));
  return Hosts(of_rank);
}

struct Algorithm {
  const char* name;
  Plan (*make)(int rank, int size, Elements elements);
  bool buffered = false;  ///< needs channels that take a message unread
};
const Algorithm kAllreduces[] = {
    {"one_shot",
     [](int r, int n, Elements e) { return one_shot_allreduce(r, n, e.count * e.bytes); }},
    {"doubling", [](int r, int n,
                    Elements e) { return recursive_doubling_allreduce(r, n, e.count * e.bytes); }},
    {"ring", [](int r, int n, Elements e) { return ring_allreduce(r, n, e, kSegment); }},
    {"two_shot", [](int r, int n, Elements e) { return two_shot_allreduce(r, n, e, kSegment); }},
    {"two_rank_exchange",
     [](int r, int n, Elements e) {
       return n == 2 ? two_rank_exchange(r, e, kSegment) : two_shot_allreduce(r, n, e, kSegment);
     },
     true},
    // Blocks of two ranks, and hosts that received their ranks one by one.
    {"hierarchical_pairs",
     [](int r, int n, Elements e) {
       return hierarchical_allreduce(r, hosts(n, [](int rank) { return rank / 2; }), e, kSegment);
     }},
    {"hierarchical_in_turns",
     [](int r, int n, Elements e) {
       return hierarchical_allreduce(r, hosts(n, [](int rank) { return rank % 3; }), e, kSegment);
     }},
    {"circulant",
     [](int r, int n, Elements e) {
       return circulant_allreduce(r, Hosts::one_rank_each(n), e, kSegment);
     }},
    {"circulant_together",
     [](int r, int n, Elements e) {
       return circulant_allreduce(r, Hosts::one_rank_each(n), e, 64 * 1024);
     }},
};
/// The algorithms for large tensors read them in place.
const Algorithm kLargeAllreduces[] = {kAllreduces[2], kAllreduces[3], kAllreduces[4],
                                      kAllreduces[5], kAllreduces[6], kAllreduces[7],
                                      kAllreduces[8]};

class AllreducePlan : public testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Plan, AllreducePlan, testing::ValuesIn(kAllreduces),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(AllreducePlan, CountsEveryRankOnce) {
  for (int size = 1; size <= kMaxSize; ++size) {
    for (const std::size_t count : std::vector<std::size_t>{0, 1, 2, 7, 64, 301}) {
      for (std::uint64_t seed = 1; seed <= 8 / kSlowness; ++seed) {
        const std::string what = "size " + std::to_string(size) + " count " +
                                 std::to_string(count) + " seed " + std::to_string(seed);
        const Elements elements{count, 8};
        Simulator simulator(plans(size, [&](int r) { return GetParam().make(r, size, elements); }),
                            DType::kI64, ReduceOp::kSum, seed);
        if (GetParam().buffered) simulator.buffer();
        simulator.data() = digits(size, count);
        ASSERT_EQ(simulator.run(), "") << what;
        for (const auto& data : simulator.data()) {
          ASSERT_EQ(data, digits_of_all(size, count)) << what;
        }
        if (size > 1) expect_all_started_before_any_finished(simulator, what);
      }
    }
  }
}

/// Random bits, hence also NaN and infinities; and many zeros of both signs, of which a minimum
/// takes the one that comes first.
void fill_with_odd_numbers(Bytes& data, std::size_t element, std::mt19937_64& random) {
  for (auto& byte : data) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < data.size(); i += element) {
    if (random() % 2 == 0) continue;
    for (std::size_t k = 0; k < element; ++k) data[i + k] = std::byte{0};
    data[i + element - 1] = random() % 2 == 0 ? std::byte{0x80} : std::byte{0};
  }
}

TEST_P(AllreducePlan, GivesTheSameBitsToAll) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kU8}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kProduct}) {
      for (int size = 2; size <= kMaxSize; ++size) {
        const std::uint64_t seed = static_cast<std::uint64_t>(size) * 77;
        const Elements elements{131, size_of(dtype)};
        Simulator simulator(plans(size, [&](int r) { return GetParam().make(r, size, elements); }),
                            dtype, op, seed);
        if (GetParam().buffered) simulator.buffer();
        std::mt19937_64 random(seed);
        for (auto& data : simulator.data()) {
          data.resize(elements.count * elements.bytes);
          fill_with_odd_numbers(data, elements.bytes, random);
        }
        ASSERT_EQ(simulator.run(), "");
        for (const auto& data : simulator.data()) {
          ASSERT_EQ(data, simulator.data()[0]) << "size " << size << " dtype " << int(dtype);
        }
      }
    }
  }
}

class LargeAllreducePlan : public testing::TestWithParam<Algorithm> {
 protected:
  static Simulator simulator(int size, std::size_t count, std::uint64_t seed) {
    const auto make = [&](int r) { return GetParam().make(r, size, {count, 8}); };
    Simulator made(plans(size, make), DType::kI64, ReduceOp::kSum, seed);
    if (GetParam().buffered) made.buffer();
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(Plan, LargeAllreducePlan, testing::ValuesIn(kLargeAllreduces),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(LargeAllreducePlan, WorksFromOneMemoryToAnother) {
  for (int size = 2; size <= kMaxSize; ++size) {
    for (const std::size_t count : std::vector<std::size_t>{0, 1, 7, 64, 301}) {
      const std::uint64_t seed = count * 31 + static_cast<std::uint64_t>(size);
      Simulator out_of_place = simulator(size, count, seed);
      Simulator in_place = simulator(size, count, seed + 1);
      out_of_place.data() = in_place.data() = digits(size, count);
      out_of_place.separate_input();
      ASSERT_EQ(out_of_place.run(), "") << "seed " << seed;
      ASSERT_EQ(in_place.run(), "") << "seed " << seed;
      ASSERT_EQ(out_of_place.data(), in_place.data()) << "size " << size << " count " << count;
    }
  }
}

/// An operation may fail at any moment, and leaves its input as it was.
TEST_P(LargeAllreducePlan, CanBeUndoneAtAnyMoment) {
  for (int size = 2; size <= 6; ++size) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const std::size_t count = 1 + seed * 5;
      Simulator in_place = simulator(size, count, seed);
      in_place.data() = digits(size, count);
      ASSERT_EQ(in_place.run(seed * static_cast<std::uint64_t>(size)), "");
      in_place.undo();
      ASSERT_EQ(in_place.data(), digits(size, count)) << "size " << size << " seed " << seed;
    }
  }
}

TEST(OneShotAllreduce, ReducesInRankOrder) {
  const int size = 5;
  Simulator simulator(plans(size, [&](int r) { return one_shot_allreduce(r, size, 4); }),
                      DType::kF32, ReduceOp::kSum, 3);
  const std::vector<float> values{1e8F, 3.0F, -1e8F, 5.0F, 0.1F};
  float expected = values[0];
  for (std::size_t i = 1; i < 5; ++i) expected += values[i];
  for (std::size_t i = 0; i < 5; ++i) simulator.data()[i] = bytes_of(std::vector<float>{values[i]});
  ASSERT_EQ(simulator.run(), "");
  for (const auto& data : simulator.data()) EXPECT_EQ(data, bytes_of(std::vector<float>{expected}));
}

TEST(RingReduceScatter, LeavesEveryRankItsPart) {
  for (int size = 1; size <= kMaxSize; ++size) {
    for (const std::size_t count : std::vector<std::size_t>{0, 1, 5, 100, 333}) {
      const std::uint64_t seed = count + static_cast<std::uint64_t>(size);
      Simulator simulator(plans(size,
                                [&](int r) {
                                  return ring_reduce_scatter(r, size, {count, 4}, kSegment);
                                }),
                          DType::kI32, ReduceOp::kSum, seed);
      for (auto& data : simulator.data()) {
        std::vector<std::int32_t> mine(count);
        for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<std::int32_t>(i);
        data = bytes_of(mine);
      }
      ASSERT_EQ(simulator.run(), "");
      const auto parts = static_cast<std::size_t>(size);
      for (std::size_t r = 0; r < parts; ++r) {
        for (std::size_t i = part_begin(count, parts, r); i < part_begin(count, parts, r + 1);
             ++i) {
          std::int32_t value = 0;
          std::memcpy(&value, simulator.data()[r].data() + i * 4, 4);
          ASSERT_EQ(value, static_cast<std::int32_t>(i) * size) << "seed " << seed;
        }
      }
    }
  }
}

TEST(Parts, CoverEverythingWithoutOverflow) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{3}, std::size_t{1000}, ~std::size_t{0}}) {
    EXPECT_EQ(part_begin(count, 7, 0), 0U);
    EXPECT_EQ(part_begin(count, 7, 7), count);
  }
  EXPECT_EQ(part_begin(10, 4, 1), 2U);
  EXPECT_EQ(part_begin(10, 4, 3), 7U);
}

TEST(RingAllgather, CollectsRaggedBlocks) {
  std::mt19937_64 random(5);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int round = 0; round < 5; ++round) {
      std::vector<std::uint64_t> counts;
      std::vector<std::int16_t> expected;
      for (int r = 0; r < size; ++r) {
        counts.push_back(random() % 3 == 0 ? 0 : random() % 90);
        for (std::uint64_t i = 0; i < counts.back(); ++i) {
          expected.push_back(static_cast<std::int16_t>(r * 100 + static_cast<int>(i)));
        }
      }
      Simulator simulator(
          plans(size, [&](int r) { return ring_allgather(r, counts, 2, kSegment); }), DType::kF16,
          ReduceOp::kSum, random());
      std::size_t begin = 0;
      for (std::size_t r = 0; r < counts.size(); ++r) {
        const std::size_t bytes = counts[r] * 2;
        simulator.data()[r].resize(expected.size() * 2);
        std::copy_n(bytes_of(expected).begin() + static_cast<std::ptrdiff_t>(begin), bytes,
                    simulator.data()[r].begin());
        begin += bytes;
      }
      simulator.separate_input();
      ASSERT_EQ(simulator.run(), "");
      for (const auto& data : simulator.data()) ASSERT_EQ(data, bytes_of(expected));
    }
  }
}

void expect_collects_blocks(Plan (*allgather)(int rank, int size, std::size_t bytes)) {
  for (int size = 1; size <= kMaxSize; ++size) {
    Simulator simulator(plans(size, [&](int r) { return allgather(r, size, 8); }), DType::kI64,
                        ReduceOp::kSum, 9);
    std::vector<std::int64_t> expected;
    for (int r = 0; r < size; ++r) expected.push_back(r + 1000);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      std::vector<std::int64_t> mine(expected.size());
      mine[r] = expected[r];
      simulator.data()[r] = bytes_of(mine);
    }
    ASSERT_EQ(simulator.run(), "");
    for (const auto& data : simulator.data()) ASSERT_EQ(data, bytes_of(expected));
    if (size > 1) expect_all_started_before_any_finished(simulator, std::to_string(size));
  }
}

TEST(OneShotAllgather, CollectsBlocks) {
  expect_collects_blocks(one_shot_allgather);
}

TEST(DisseminationAllgather, CollectsBlocks) {
  expect_collects_blocks(dissemination_allgather);
}

TEST(DisseminationAllgather, HasTheNeighboursOfTheBarrierAsPeers) {
  for (const int size : {2, 17, 64, 100}) {
    for (int rank = 0; rank < size; rank += 7) {
      std::set<int> expected;
      for (const Step& step : dissemination_barrier(rank, size).steps) expected.insert(step.peer);
      for (const Step& step : dissemination_allgather(rank, size, 8).steps) {
        EXPECT_TRUE(expected.contains(step.peer)) << rank << " of " << size << ": " << step.peer;
      }
    }
  }
}

/// Both ends of a link have to make it. And the cost of a view must not grow with the job.
TEST(Neighbours, AreMutualAndFew) {
  const auto alone = [](int rank) { return rank; };
  const auto together = [](int) { return 0; };
  const auto pairs = [](int rank) { return rank / 2; };
  for (const int size : {2, 3, 16, 17, 33, 64, 100, 257}) {
    for (int (*const host_of)(int) : {+alone, +together, +pairs}) {
      const Hosts placed = hosts(size, host_of);
      std::vector<std::vector<int>> of_rank;
      for (int rank = 0; rank < size; ++rank) of_rank.push_back(neighbours(rank, placed));
      for (int rank = 0; rank < size; ++rank) {
        const auto& mine = of_rank[static_cast<std::size_t>(rank)];
        const double most = 5 * std::ceil(std::log2(size)) + 4;
        EXPECT_LE(static_cast<double>(mine.size()), most) << rank << " of " << size;
        for (const int peer : mine) {
          ASSERT_NE(peer, rank);
          const auto& its = of_rank[static_cast<std::size_t>(peer)];
          EXPECT_TRUE(std::ranges::binary_search(its, rank)) << rank << " and " << peer;
        }
      }
    }
  }
}

TEST(Neighbours, AreThePeersOfEveryUsualPlan) {
  constexpr int kSize = 37;
  for (int (*const host_of)(int) :
       {+[](int rank) { return rank; }, +[](int rank) { return rank % 5; }}) {
    const Hosts placed = hosts(kSize, host_of);
    for (int rank = 0; rank < kSize; ++rank) {
      const std::vector<int> linked = neighbours(rank, placed);
      std::vector<Plan> usual{dissemination_allgather(rank, kSize, 8),
                              dissemination_barrier(rank, kSize),
                              recursive_doubling_allreduce(rank, kSize, 100),
                              ring_allreduce(rank, kSize, {10000, 4}, kSegment),
                              hierarchical_allreduce(rank, placed, {10000, 4}, kSegment),
                              ring_reduce_scatter(rank, kSize, {10000, 4}, kSegment)};
      if (placed.count() >= kLeastCirculantHosts) {
        usual.push_back(circulant_allreduce(rank, placed, {10000, 4}, kSegment));
      }
      for (int root = 0; root < kSize; ++root) {
        usual.push_back(tree_broadcast(rank, kSize, root, 8));
        usual.push_back(chain_broadcast(rank, kSize, root, 1000, kSegment));
      }
      for (const Plan& plan : usual) {
        for (const Step& step : plan.steps) {
          if (step.peer == Step::kNone) continue;
          ASSERT_TRUE(std::ranges::binary_search(linked, step.peer)) << rank << ", " << step.peer;
        }
      }
    }
  }
}

TEST(Broadcast, ReachesEveryRankFromAnyRoot) {
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int root = 0; root < size; ++root) {
      for (const std::size_t bytes : std::vector<std::size_t>{0, 1, 47, 48, 1001}) {
        for (const bool tree : {false, true}) {
          const auto make = [&](int r) {
            return tree ? tree_broadcast(r, size, root, bytes)
                        : chain_broadcast(r, size, root, bytes, kSegment);
          };
          Simulator simulator(plans(size, make), DType::kU8, ReduceOp::kSum, bytes + 1);
          for (auto& data : simulator.data()) data.resize(bytes);
          auto& source = simulator.data()[static_cast<std::size_t>(root)];
          for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
          const Bytes expected = source;
          ASSERT_EQ(simulator.run(), "") << size << " " << root << " " << bytes << " " << tree;
          for (const auto& data : simulator.data()) ASSERT_EQ(data, expected);
        }
      }
    }
  }
}

TEST(Barrier, IsBesideAPlan) {
  for (int size = 2; size <= kMaxSize; ++size) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const int root = static_cast<int>(seed) % size;
      const std::size_t bytes = seed % 3 * 100;
      const auto make = [&](int rank) {
        return with_barrier(rank, size,
                            seed % 2 == 0 ? tree_broadcast(rank, size, root, bytes)
                                          : chain_broadcast(rank, size, root, bytes, kSegment));
      };
      Simulator simulator(plans(size, make), DType::kU8, ReduceOp::kSum, seed);
      for (auto& data : simulator.data()) data.resize(bytes);
      auto& source = simulator.data()[static_cast<std::size_t>(root)];
      std::ranges::fill(source, static_cast<std::byte>(seed));
      const Bytes expected = source;
      ASSERT_EQ(simulator.run(), "") << size << " seed " << seed;
      for (const auto& data : simulator.data()) ASSERT_EQ(data, expected);
      expect_all_started_before_any_finished(simulator, "seed " + std::to_string(seed));
    }
  }
}

TEST(Barrier, HoldsBackEveryRankUntilAllCame) {
  for (int size = 2; size <= kMaxSize; ++size) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Simulator simulator(plans(size, [&](int r) { return dissemination_barrier(r, size); }),
                          DType::kU8, ReduceOp::kSum, seed);
      ASSERT_EQ(simulator.run(), "");
      expect_all_started_before_any_finished(simulator, "seed " + std::to_string(seed));
    }
  }
  EXPECT_TRUE(dissemination_barrier(0, 1).steps.empty());
}

TEST(Transfer, SharesTheWorkAmongDonors) {
  struct Case {
    std::vector<int> donors;
    std::vector<int> receivers;
  };
  for (const Case& each : {Case{{0}, {1}}, Case{{3, 0, 2}, {4}}, Case{{1}, {0, 2, 3, 4}},
                           Case{{0, 1, 2}, {3, 4}}, Case{{0, 4}, {}}}) {
    for (const std::size_t bytes : std::vector<std::size_t>{0, 1, 48, 49, 1000}) {
      const auto make = [&](int r) {
        return transfer(r, each.donors, each.receivers, bytes, kSegment);
      };
      Simulator simulator(plans(5, make), DType::kU8, ReduceOp::kSum, bytes);
      Bytes expected(bytes);
      for (std::size_t i = 0; i < bytes; ++i) expected[i] = static_cast<std::byte>(i * 3 + 1);
      for (auto& data : simulator.data()) data.resize(bytes);
      for (const int donor : each.donors)
        simulator.data()[static_cast<std::size_t>(donor)] = expected;
      ASSERT_EQ(simulator.run(), "");
      for (const int receiver : each.receivers) {
        ASSERT_EQ(simulator.data()[static_cast<std::size_t>(receiver)], expected);
      }
    }
  }
}

/// If no two ranks share a host, links have no bound on the messages that they take.
TEST(Choose, ByWhoSharesAHost) {
  constexpr std::size_t kLarge = 1 << 20;
  const Thresholds shared{.capacity = kLarge};
  EXPECT_EQ(choose_allreduce(Hosts({0, 1}), kLarge, {.capacity = ~0UL}),
            AllreduceAlgorithm::kTwoShot);
  EXPECT_EQ(choose_allreduce(Hosts({0, 1, 2}), kLarge, {.capacity = ~0UL}),
            AllreduceAlgorithm::kRing);
  EXPECT_EQ(choose_allreduce(Hosts({0, 0, 1}), kLarge, shared), AllreduceAlgorithm::kHierarchical);
  EXPECT_EQ(choose_allreduce(Hosts({0, 1, 0, 1}), kLarge, shared),
            AllreduceAlgorithm::kHierarchical);
  EXPECT_EQ(choose_allreduce(Hosts({0, 1, 0, 1}), 8, shared), AllreduceAlgorithm::kOneShot);
  // A ring of more hosts takes longer to get round, whatever is sent.
  constexpr std::size_t kSmall = 40 * 1024;
  EXPECT_EQ(choose_allreduce(Hosts({0, 0, 1}), kSmall, shared), AllreduceAlgorithm::kHierarchical);
  EXPECT_EQ(choose_allreduce(Hosts({0, 0, 1, 2}), kSmall, shared), AllreduceAlgorithm::kDoubling);
  EXPECT_EQ(choose_allreduce(Hosts({0, 0, 1, 2}), kLarge, shared),
            AllreduceAlgorithm::kHierarchical);
  EXPECT_EQ(choose_allreduce(Hosts({0, 0, 1}), kLarge), AllreduceAlgorithm::kRing)
      << "no shared memory";
}

TEST(Choose, BySizeAndBytes) {
  const Hosts two = Hosts::one(2);
  EXPECT_EQ(choose_allreduce(two, 8), AllreduceAlgorithm::kOneShot);
  EXPECT_EQ(choose_allreduce(Hosts::one(9), 8), AllreduceAlgorithm::kDoubling);
  EXPECT_EQ(choose_allreduce(two, 64 * 1024), AllreduceAlgorithm::kDoubling);
  EXPECT_EQ(choose_allreduce(two, 1 << 20), AllreduceAlgorithm::kTwoShot);
  EXPECT_EQ(choose_allreduce(two, 1 << 20, {.capacity = 1 << 20}),
            AllreduceAlgorithm::kTwoRankExchange);
  EXPECT_EQ(choose_allreduce(Hosts::one(3), 1 << 20), AllreduceAlgorithm::kTwoShot);
  EXPECT_EQ(choose_allreduce(Hosts::one(3), 1 << 20, {.two_shot_ranks = 2}),
            AllreduceAlgorithm::kRing);
  EXPECT_FALSE(choose_tree_broadcast(2, 8));
  EXPECT_TRUE(choose_tree_broadcast(4, 8));
  EXPECT_FALSE(choose_tree_broadcast(4, 1 << 20));
}

}  // namespace
}  // namespace elastic::plan
