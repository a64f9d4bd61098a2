// Plans whose results differ by rank.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/plan/personal.hpp"
#include "collectives/plan/reduce.hpp"
#include "plan_checks.hpp"
#include "plan_simulator.hpp"

namespace elastic::plan {
namespace {

constexpr int kMaxSize = 9;
constexpr std::size_t kSegment = 48;

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

/// counts[r][s]: elements from rank r to rank s.
using Matrix = std::vector<std::vector<std::uint64_t>>;

Matrix random_matrix(int size, std::mt19937_64& random) {
  Matrix counts(at(size));
  for (auto& row : counts) {
    for (int s = 0; s < size; ++s) row.push_back(random() % 3 == 0 ? 0 : random() % 20);
  }
  return counts;
}

std::vector<std::uint64_t> in_bytes(std::vector<std::uint64_t> counts) {
  for (auto& count : counts) count *= 8;
  return counts;
}

std::vector<std::uint64_t> column(const Matrix& counts, int rank) {
  std::vector<std::uint64_t> from;
  for (const auto& row : counts) from.push_back(row[at(rank)]);
  return from;
}

/// The elements of the block from rank r to rank s.
std::vector<std::int64_t> block(int r, int s, std::uint64_t count) {
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    values.push_back(r * 1'000'000 + s * 1'000 + static_cast<std::int64_t>(i));
  }
  return values;
}

void append(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Runs the plans on the inputs, and expects each rank's result at the start of its data.
void expect_results(std::vector<Plan> plans, const std::vector<std::vector<std::int64_t>>& inputs,
                    const std::vector<std::vector<std::int64_t>>& results, std::uint64_t seed) {
  Simulator simulator(std::move(plans), DType::kI64, ReduceOp::kSum, seed);
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    auto& data = simulator.data()[r];
    data = bytes_of(inputs[r]);
    data.resize(std::max(inputs[r].size(), results[r].size()) * 8);
  }
  simulator.separate_input();
  ASSERT_EQ(simulator.run(), "") << "seed " << seed;
  for (std::size_t r = 0; r < results.size(); ++r) {
    Bytes result = simulator.data()[r];
    result.resize(results[r].size() * 8);
    ASSERT_EQ(result, bytes_of(results[r])) << "rank " << r << ", seed " << seed;
  }
}

TEST(Alltoall, GivesEachRankItsBlocks) {
  std::mt19937_64 random(1);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int round = 0; round < 10; ++round) {
      const Matrix counts = random_matrix(size, random);
      std::vector<std::vector<std::int64_t>> inputs(at(size));
      std::vector<std::vector<std::int64_t>> results(at(size));
      for (int r = 0; r < size; ++r) {
        for (int s = 0; s < size; ++s) {
          append(inputs[at(r)], block(r, s, counts[at(r)][at(s)]));
          append(results[at(r)], block(s, r, counts[at(s)][at(r)]));
        }
      }
      expect_results(plans(size,
                           [&](int r) {
                             return alltoall(r, in_bytes(counts[at(r)]),
                                             in_bytes(column(counts, r)), kSegment);
                           }),
                     inputs, results, random());
    }
  }
}

TEST(Gather, GivesTheRootAllBlocks) {
  std::mt19937_64 random(2);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int root = 0; root < size; ++root) {
      const auto counts = random_matrix(size, random).front();
      std::vector<std::vector<std::int64_t>> inputs(at(size));
      std::vector<std::vector<std::int64_t>> results(at(size));
      for (int r = 0; r < size; ++r) {
        inputs[at(r)] = block(r, root, counts[at(r)]);
        append(results[at(root)], inputs[at(r)]);
      }
      expect_results(
          plans(size, [&](int r) { return gather(r, root, in_bytes(counts), kSegment); }), inputs,
          results, random());
    }
  }
}

TEST(Scatter, GivesEachRankItsBlockOfTheRoot) {
  std::mt19937_64 random(3);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int root = 0; root < size; ++root) {
      const auto counts = random_matrix(size, random).front();
      std::vector<std::vector<std::int64_t>> inputs(at(size));
      std::vector<std::vector<std::int64_t>> results(at(size));
      for (int r = 0; r < size; ++r) {
        results[at(r)] = block(root, r, counts[at(r)]);
        append(inputs[at(root)], results[at(r)]);
      }
      expect_results(
          plans(size, [&](int r) { return scatter(r, root, in_bytes(counts), kSegment); }), inputs,
          results, random());
    }
  }
}

/// The sums of the digits of ranks `first` to `last`.
Bytes digits_of(int first, int last, std::size_t count) {
  std::vector<std::int64_t> sum(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = first; rank <= last; ++rank) {
      sum[i] += (std::int64_t{1} << (4 * rank)) * (1 + static_cast<std::int64_t>(i % 5));
    }
  }
  return bytes_of(sum);
}

const std::size_t kCounts[] = {0, 1, 7, 64, 301};

TEST(Reduce, CountsEveryRankOnceOnTheRoot) {
  std::mt19937_64 random(4);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int root = 0; root < size; ++root) {
      for (const std::size_t count : kCounts) {
        for (const bool tree : {true, false}) {
          Simulator simulator(plans(size,
                                    [&](int r) {
                                      return tree ? tree_reduce(r, size, root, count * 8)
                                                  : chain_reduce(r, size, root, {count, 8},
                                                                 kSegment);
                                    }),
                              DType::kI64, ReduceOp::kSum, random());
          simulator.data() = digits(size, count);
          ASSERT_EQ(simulator.run(), "");
          ASSERT_EQ(simulator.data()[at(root)], digits_of(0, size - 1, count))
              << (tree ? "tree, " : "chain, ") << size << " ranks, root " << root;
        }
      }
    }
  }
}

TEST(Reduce, LeavesASeparateInputAsItIs) {
  std::mt19937_64 random(6);
  for (int size = 2; size <= kMaxSize; ++size) {
    const int root = static_cast<int>(random() % at(size));
    for (const bool tree : {true, false}) {
      constexpr std::size_t kCount = 301;
      Simulator simulator(plans(size,
                                [&](int r) {
                                  return tree ? tree_reduce(r, size, root, kCount * 8)
                                              : chain_reduce(r, size, root, {kCount, 8}, kSegment);
                                }),
                          DType::kI64, ReduceOp::kSum, random());
      simulator.data() = digits(size, kCount);
      simulator.separate_input();
      ASSERT_EQ(simulator.run(), "");
      ASSERT_EQ(simulator.data()[at(root)], digits_of(0, size - 1, kCount))
          << (tree ? "tree, " : "chain, ") << size << " ranks, root " << root;
    }
  }
}

TEST(DirectReduceScatter, GivesEachRankItsPart) {
  std::mt19937_64 random(7);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (const std::size_t count : kCounts) {
      std::vector<std::vector<std::int64_t>> inputs(at(size));
      std::vector<std::vector<std::int64_t>> results(at(size));
      for (int r = 0; r < size; ++r) {
        for (std::size_t i = 0; i < count; ++i) {
          inputs[at(r)].push_back((std::int64_t{1} << (4 * r)) + static_cast<std::int64_t>(i));
        }
        const std::size_t end = part_begin(count, at(size), at(r) + 1);
        for (std::size_t i = part_begin(count, at(size), at(r)); i < end; ++i) {
          std::int64_t sum = 0;
          for (int s = 0; s < size; ++s) {
            sum += (std::int64_t{1} << (4 * s)) + static_cast<std::int64_t>(i);
          }
          results[at(r)].push_back(sum);
        }
      }
      expect_results(plans(size,
                           [&](int r) {
                             return direct_reduce_scatter(r, size, {count, 8}, kSegment);
                           }),
                     inputs, results, random());
    }
  }
}

TEST(Scan, CountsTheRanksUpToEach) {
  std::mt19937_64 random(5);
  for (int size = 1; size <= kMaxSize; ++size) {
    for (const std::size_t count : kCounts) {
      for (const bool doubling : {true, false}) {
        Simulator simulator(plans(size,
                                  [&](int r) {
                                    return doubling ? doubling_scan(r, size, count * 8)
                                                    : chain_scan(r, size, {count, 8}, kSegment);
                                  }),
                            DType::kI64, ReduceOp::kSum, random());
        simulator.data() = digits(size, count);
        ASSERT_EQ(simulator.run(), "");
        for (int rank = 0; rank < size; ++rank) {
          ASSERT_EQ(simulator.data()[at(rank)], digits_of(0, rank, count))
              << (doubling ? "doubling, " : "chain, ") << rank << " of " << size;
        }
      }
    }
  }
}

TEST(Shift, GivesEachRankThatOfTheRankBefore) {
  for (int size = 1; size <= kMaxSize; ++size) {
    Simulator simulator(plans(size, [&](int r) { return shift(r, size, 24); }), DType::kI64,
                        ReduceOp::kSum, 6);
    const std::vector<Bytes> before = digits(size, 3);
    simulator.data() = before;
    ASSERT_EQ(simulator.run(), "");
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(simulator.data()[at(rank)], before[at(std::max(rank - 1, 0))]);
    }
  }
}

}  // namespace
}  // namespace elastic::plan
