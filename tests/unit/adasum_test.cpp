#include "collectives/plan/adasum.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "collectives/kernels/adasum.hpp"
#include "elastic/half.hpp"

namespace elastic {
namespace {

using plan::Adasum;
using plan::AdasumLevel;

std::vector<Adasum> parts(int size, std::size_t bytes) {
  std::vector<Adasum> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(plan::adasum(rank, size, bytes));
  return all;
}

const AdasumLevel& level_of(const std::vector<Adasum>& all, int rank, std::size_t level) {
  return all.at(static_cast<std::size_t>(rank)).levels.at(level);
}

bool same(const plan::Range& one, const plan::Range& other) {
  return one.offset == other.offset && one.bytes == other.bytes;
}

constexpr std::size_t kBytes[] = {0, 1, 64, 65, 1000, 1 << 20};

TEST(AdasumPlan, PeersCombineAHalfEach) {
  for (int size = 1; size <= 17; ++size) {
    for (const std::size_t bytes : kBytes) {
      const std::vector<Adasum> all = parts(size, bytes);
      for (int rank = 0; rank < size; ++rank) {
        plan::Range part{plan::Area::kData, 0, bytes};
        const auto& levels = all[static_cast<std::size_t>(rank)].levels;
        for (std::size_t i = 0; i < levels.size(); ++i) {
          const AdasumLevel& own = levels[i];
          const AdasumLevel& other = level_of(all, own.peer, i);
          EXPECT_EQ(other.peer, rank);
          EXPECT_NE(own.is_lower, other.is_lower);
          EXPECT_TRUE(same(own.kept, other.given) && same(own.given, other.kept));
          EXPECT_EQ(own.kept.bytes + own.given.bytes, part.bytes);
          EXPECT_EQ(std::min(own.kept.offset, own.given.offset), part.offset);
          EXPECT_EQ(own.kept.offset % 64, 0U) << "cuts elements";
          part = own.kept;
        }
      }
    }
  }
}

/// The dot products are right if the halves of both blocks are the whole vector.
TEST(AdasumPlan, TheRanksOfALevelHaveTheWholeVectorOnce) {
  for (int size = 1; size <= 17; ++size) {
    const std::vector<Adasum> all = parts(size, 4096);
    for (int rank = 0; rank < size; ++rank) {
      const auto& levels = all[static_cast<std::size_t>(rank)].levels;
      for (std::size_t i = 0; i < levels.size(); ++i) {
        const std::vector<int>& ranks = levels[i].ranks;
        EXPECT_EQ(ranks.size(), std::size_t{2} << i);
        EXPECT_TRUE(std::ranges::is_sorted(ranks));
        EXPECT_NE(std::ranges::find(ranks, rank), ranks.end());
        std::vector<int> covered(4096);
        for (const int each : ranks) {
          const AdasumLevel& level = level_of(all, each, i);
          EXPECT_EQ(level.ranks, ranks);
          for (std::size_t at = 0; at < level.kept.bytes; ++at) ++covered[level.kept.offset + at];
        }
        EXPECT_EQ(covered, std::vector<int>(4096, 1));
      }
    }
  }
}

TEST(AdasumPlan, SurplusRanksHaveAProxy) {
  for (int size = 1; size <= 17; ++size) {
    const auto left = static_cast<std::ptrdiff_t>(std::bit_floor(static_cast<unsigned>(size)));
    const std::vector<Adasum> all = parts(size, 100);
    std::ptrdiff_t active = 0;
    for (int rank = 0; rank < size; ++rank) {
      const Adasum& part = all[static_cast<std::size_t>(rank)];
      if (part.proxy) {
        EXPECT_EQ(all[static_cast<std::size_t>(*part.proxy)].surplus, rank);
        EXPECT_TRUE(part.levels.empty());
      } else {
        ++active;
      }
      if (part.surplus) {
        EXPECT_EQ(all[static_cast<std::size_t>(*part.surplus)].proxy, rank);
      }
    }
    EXPECT_EQ(active, left);
  }
}

/// The host of each rank: even, uneven and mixed ones.
const std::vector<std::vector<int>> kHosts = {{0},
                                              {0, 0, 0},
                                              {0, 1, 2},
                                              {0, 0, 1, 1},
                                              {0, 1, 0, 1, 1},
                                              {2, 0, 0, 1, 1, 1},
                                              {0, 0, 1, 1, 2, 2}};

TEST(HierarchicalAdasumPlan, OwnersHaveTheWholeVectorOnce) {
  for (const std::vector<int>& numbers : kHosts) {
    const plan::Hosts hosts(numbers);
    for (const std::size_t bytes : kBytes) {
      for (int rank = 0; rank < hosts.size(); ++rank) {
        const auto part = plan::hierarchical_adasum(rank, hosts, bytes, 100);
        EXPECT_EQ(part.host_ranks, hosts.ranks(hosts.of(rank)));
        EXPECT_EQ(part.host_ranks[static_cast<std::size_t>(part.place)], rank);
        EXPECT_EQ(part.between.has_value(), part.is_owner(part.place));
        std::size_t end = 0;
        for (int owner = 0; owner < part.owners; ++owner) {
          const plan::Range share = part.share_of(owner);
          EXPECT_EQ(share.offset, end);
          EXPECT_TRUE(share.offset % 64 == 0 || share.bytes == 0) << "cuts elements";
          end = share.offset + share.bytes;
        }
        EXPECT_EQ(end, bytes);
      }
    }
  }
}

/// Otherwise the dot products would be those of parts.
TEST(HierarchicalAdasumPlan, TheOwnersOfALevelHaveTheWholeVectorOnce) {
  for (const std::vector<int>& numbers : kHosts) {
    const plan::Hosts hosts(numbers);
    std::vector<plan::HierarchicalAdasum> all;
    for (int rank = 0; rank < hosts.size(); ++rank) {
      all.push_back(plan::hierarchical_adasum(rank, hosts, 4096, 64));
    }
    for (int rank = 0; rank < hosts.size(); ++rank) {
      const auto& between = all[static_cast<std::size_t>(rank)].between;
      if (!between) continue;
      for (std::size_t i = 0; i < between->levels.size(); ++i) {
        const AdasumLevel& own = between->levels[i];
        std::vector<int> covered(4096);
        for (const int each : own.ranks) {
          const AdasumLevel& level = all[static_cast<std::size_t>(each)].between->levels[i];
          EXPECT_EQ(level.ranks, own.ranks);
          for (std::size_t at = 0; at < level.kept.bytes; ++at) ++covered[level.kept.offset + at];
        }
        EXPECT_EQ(covered, std::vector<int>(4096, 1));
        const AdasumLevel& other = all[static_cast<std::size_t>(own.peer)].between->levels[i];
        EXPECT_EQ(other.peer, rank);
        EXPECT_NE(hosts.of(own.peer), hosts.of(rank));
        EXPECT_TRUE(same(own.kept, other.given) && same(own.given, other.kept));
      }
      if (between->surplus) {
        EXPECT_EQ(all[static_cast<std::size_t>(*between->surplus)].between->proxy, rank);
        EXPECT_EQ(between->fold_ranks.size(),
                  static_cast<std::size_t>(all[static_cast<std::size_t>(rank)].owners));
      }
    }
  }
}

TEST(AdasumPlan, IsRenumberedForTheRanksOfAGroup) {
  plan::Plan given;
  given.steps.resize(3);
  given.steps[0].peer = 1;
  given.steps[2].peer = 0;
  const plan::Plan made = plan::among({4, 9}, given);
  EXPECT_EQ(made.steps[0].peer, 9);
  EXPECT_EQ(made.steps[1].peer, plan::Step::kNone);
  EXPECT_EQ(made.steps[2].peer, 4);
}

template <typename T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(AdasumKernels, MultiplyInDouble) {
  for (const std::size_t count : {0UL, 1UL, 7UL, 8UL, 9UL, 100UL}) {
    std::vector<float> a(count);
    std::vector<float> b(count);
    std::iota(a.begin(), a.end(), 0x1p24F);  // products have more bits than a float
    std::iota(b.begin(), b.end(), -3.0F);
    const auto products = kernels::dot_products(DType::kF32, bytes_of(a), bytes_of(b), count);
    EXPECT_EQ(products.ab, std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
    EXPECT_EQ(products.bb, std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
  }
}

TEST(AdasumKernels, WeighByTheAngle) {
  EXPECT_EQ(kernels::adasum_weight(0, 5), 1);    // orthogonal
  EXPECT_EQ(kernels::adasum_weight(5, 5), 0.5);  // the same
  EXPECT_EQ(kernels::adasum_weight(0, 0), 1);    // a vector of length 0
}

TEST(AdasumKernels, RoundOnce) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6, 7, 8, 0x1p24F};
  std::vector<float> b{1, 1, 1, 1, 1, 1, 1, 1, 3};
  auto* const into = reinterpret_cast<std::byte*>(b.data());
  kernels::weighted_sum(DType::kF32, into, bytes_of(a), 0.5, into, 0.5, a.size());
  EXPECT_EQ(b, (std::vector<float>{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 0x1p23F + 2}));
}

/// On every instruction set of this processor.
TEST(AdasumKernels, HaveTheSameBitsEverywhere) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    constexpr std::size_t kCount = 1003;
    std::mt19937_64 random(20260101);
    std::vector<double> a(kCount);  // room for any of the types
    std::vector<double> b(kCount);
    for (std::vector<double>* each : {&a, &b}) {
      std::normal_distribution<float> number;
      for (std::size_t i = 0; i < kCount; ++i) {
        auto* const to = reinterpret_cast<std::byte*>(each->data()) + i * size_of(dtype);
        const float value = number(random);
        const double wide = double{value} * 0x1.123456789p0;
        const std::uint16_t half = float16(value).bits;
        const std::uint16_t brain = bfloat16(value).bits;
        std::memcpy(to,
                    dtype == DType::kF64   ? static_cast<const void*>(&wide)
                    : dtype == DType::kF32 ? static_cast<const void*>(&value)
                    : dtype == DType::kF16 ? static_cast<const void*>(&half)
                                           : static_cast<const void*>(&brain),
                    size_of(dtype));
      }
    }
    std::vector<std::vector<double>> results;
    for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
      hwy::SetSupportedTargetsForTest(left & -left);
      const auto products = kernels::dot_products(dtype, bytes_of(a), bytes_of(b), kCount);
      std::vector<double>& result = results.emplace_back(kCount + 3);
      kernels::weighted_sum(dtype, reinterpret_cast<std::byte*>(result.data()), bytes_of(a), 0.7,
                            bytes_of(b), 1.1, kCount);
      result[kCount] = products.ab;
      result[kCount + 1] = products.aa;
      result[kCount + 2] = products.bb;
    }
    hwy::SetSupportedTargetsForTest(0);
    for (const auto& result : results) EXPECT_EQ(result, results.front()) << int(dtype);
  }
}

TEST(AdasumKernels, LeaveOneNan) {
  const float odd = std::bit_cast<float>(0xffc12345U);
  const std::vector<float> a{odd, 1};
  std::vector<float> sum(2);
  kernels::weighted_sum(DType::kF32, reinterpret_cast<std::byte*>(sum.data()), bytes_of(a), 1,
                        bytes_of(a), 1, 2);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum[0]), 0x7fc00000U);
  EXPECT_EQ(sum[1], 2);
}

}  // namespace
}  // namespace elastic
