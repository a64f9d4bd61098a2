#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/plan/allreduce.hpp"
#include "plan_checks.hpp"
#include "plan_simulator.hpp"
#include "tests/slowness.hpp"

namespace elastic::plan {
namespace {

constexpr std::size_t kPiece = 48;
constexpr int kMostRanks = kSlowness > 1 ? 5 : 6;

/// Every way in which `size` ranks can share hosts.
std::vector<std::vector<int>> placements(int size) {
  std::vector<std::vector<int>> all{{}};
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::vector<int>> longer;
    for (const auto& placed : all) {
      const int hosts = placed.empty() ? 0 : *std::max_element(placed.begin(), placed.end()) + 1;
      for (int host = 0; host <= hosts; ++host) {
        longer.push_back(placed);
        longer.back().push_back(host);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::string text(const std::vector<int>& placed) {
  std::string result = "hosts of the ranks:";
  for (const int host : placed) result += " " + std::to_string(host);
  return result;
}

/// Between hosts, a ring or halves.
using Make = std::function<Plan(int rank, const Hosts& hosts, Elements elements)>;

Plan ring(int rank, const Hosts& hosts, Elements elements) {
  return hierarchical_allreduce(rank, hosts, elements, kPiece);
}
/// Halves, whose blocks travel together if they are shorter than a segment.
Make halves(std::size_t segment) {
  return [segment](int rank, const Hosts& hosts, Elements elements) {
    return circulant_allreduce(rank, hosts, elements, segment);
  };
}

Simulator simulator(const Make& plan, const std::vector<int>& placed, std::size_t count,
                    std::uint64_t seed) {
  const Hosts hosts(placed);
  const auto make = [&](int rank) { return plan(rank, hosts, {count, 8}); };
  Simulator made(plans(hosts.size(), make), DType::kI64, ReduceOp::kSum, seed);
  made.data() = digits(hosts.size(), count);
  return made;
}

/// Up to six ranks, with less than an element for each share, and with more than a segment.
template <typename Check>
void for_all_placements(const Check& check) {
  for (int size = 2; size <= kMostRanks; ++size) {
    std::uint64_t seed = 0;
    for (const auto& placed : placements(size)) {
      for (const std::size_t count : std::vector<std::size_t>{0, 5, 60}) {
        ++seed;
        const std::string what =
            text(placed) + ", count " + std::to_string(count) + ", seed " + std::to_string(seed);
        const std::pair<const char*, Make> all[] = {{", ring", ring},
                                                    {", halves", halves(kPiece)},
                                                    {", halves, together", halves(64 * 1024)}};
        for (const auto& [name, plan] : all) {
          SCOPED_TRACE(what + name);
          ASSERT_NO_FATAL_FAILURE(check(plan, placed, count, seed));
        }
      }
    }
  }
}

TEST(HierarchicalPlan, CountsEveryRankOnceWhoeverSharesAHost) {
  for_all_placements(
      [](const Make& plan, const std::vector<int>& placed, std::size_t count, std::uint64_t seed) {
        const int size = static_cast<int>(placed.size());
        Simulator out_of_place = simulator(plan, placed, count, seed);
        Simulator in_place = simulator(plan, placed, count, seed + 1);
        out_of_place.separate_input();
        for (Simulator* each : {&out_of_place, &in_place}) {
          ASSERT_EQ(each->run(), "");
          for (const Bytes& data : each->data()) ASSERT_EQ(data, digits_of_all(size, count));
          expect_all_started_before_any_finished(*each, "");
        }
      });
}

TEST(HierarchicalPlan, CanBeUndoneAtAnyMoment) {
  for_all_placements(
      [](const Make& plan, const std::vector<int>& placed, std::size_t count, std::uint64_t seed) {
        Simulator whole = simulator(plan, placed, count, seed);
        ASSERT_EQ(whole.run(), "");
        const std::size_t end = *std::max_element(whole.finished().begin(), whole.finished().end());
        Simulator in_place = simulator(plan, placed, count, seed);
        ASSERT_EQ(in_place.run(std::mt19937_64(seed)() % (end + 2)), "");
        in_place.undo();
        ASSERT_EQ(in_place.data(), digits(static_cast<int>(placed.size()), count));
      });
}

/// Nothing that is not needed goes between hosts, and every byte is finished once.
TEST(HierarchicalPlan, SendsBetweenHostsWhatARingOfHostsSends) {
  for_all_placements(
      [](const Make& plan, const std::vector<int>& placed, std::size_t count, std::uint64_t) {
        const Hosts hosts(placed);
        std::vector<std::size_t> sent(static_cast<std::size_t>(hosts.count()));
        std::vector<int> finished(count * 8);
        for (int rank = 0; rank < hosts.size(); ++rank) {
          for (const Step& step : plan(rank, hosts, {count, 8}).steps) {
            if (step.kind == Step::Kind::kSend && hosts.of(step.peer) != hosts.of(rank)) {
              sent[static_cast<std::size_t>(hosts.of(rank))] += step.from.bytes;
            }
            if (step.kind != Step::Kind::kFinish) continue;
            for (std::size_t i = 0; i < step.into.bytes; ++i) ++finished[step.into.offset + i];
          }
        }
        ASSERT_EQ(finished, std::vector<int>(count * 8, 1));
        std::size_t all = 0;
        for (const std::size_t bytes : sent) all += bytes;
        ASSERT_EQ(all, 2 * static_cast<std::size_t>(hosts.count() - 1) * count * 8);
      });
}

/// Every rank of every host sends to another host.
TEST(HierarchicalPlan, LetsAllRanksSend) {
  for_all_placements(
      [](const Make& plan, const std::vector<int>& placed, std::size_t count, std::uint64_t) {
        const Hosts hosts(placed);
        if (hosts.count() == 1) return;
        for (int rank = 0; rank < hosts.size(); ++rank) {
          const auto& steps = plan(rank, hosts, {count, 8}).steps;
          ASSERT_TRUE(std::any_of(steps.begin(), steps.end(),
                                  [&](const Step& step) {
                                    return step.kind == Step::Kind::kSend &&
                                           hosts.of(step.peer) != hosts.of(rank);
                                  }))
              << "rank " << rank;
        }
      });
}

TEST(Hosts, AreNumberedAsTheirFirstRanksCome) {
  const Hosts hosts({7, 3, 7, 7, 1});
  EXPECT_EQ(hosts.size(), 5);
  EXPECT_EQ(hosts.count(), 3);
  EXPECT_EQ(hosts.of(2), 0);
  EXPECT_EQ(hosts.of(4), 2);
  EXPECT_EQ(hosts.ranks(0), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(hosts.most_ranks(), 3);
  EXPECT_EQ(Hosts::one(4).count(), 1);
}

/// In a message for each hop, or two where the blocks of a half do not lie one after another, and
/// one more where a half is not half.
TEST(HierarchicalPlan, HalvesSendFewMessagesForSmallTensors) {
  const auto sends = [](int hosts, std::size_t bytes) {
    std::size_t most = 0;
    for (int rank = 0; rank < hosts; ++rank) {
      const Plan plan =
          circulant_allreduce(rank, Hosts::one_rank_each(hosts), {bytes / 8, 8}, 256 * 1024);
      const auto of_rank = std::ranges::count(plan.steps, Step::Kind::kSend, &Step::kind);
      most = std::max(most, static_cast<std::size_t>(of_rank));
    }
    return most;
  };
  EXPECT_LE(sends(16, 32 * 1024), 3U * 4);
  EXPECT_LE(sends(100, 32 * 1024), 3U * 7 + 2);
  EXPECT_LE(sends(256, 8 * 1024 * 1024), 3U * 8);
  EXPECT_EQ(sends(256, 256 * 1024 * 1024), 2U * 255 * 4);
}

TEST(HierarchicalPlan, HalvesOfManyHostsCountEveryHostOnce) {
  const int most = kSlowness > 1 ? 24 : 40;
  for (int hosts = 7; hosts <= most; ++hosts) {
    const auto make = [&](int rank) {
      return circulant_allreduce(rank, Hosts::one_rank_each(hosts), {1000, 8}, 64 * 1024);
    };
    const auto seed = static_cast<std::uint64_t>(hosts);
    Simulator simulator(plans(hosts, make), DType::kI64, ReduceOp::kSum, seed);
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> sums(1000);
    std::vector<Bytes> inputs;
    for (int rank = 0; rank < hosts; ++rank) {
      Bytes& data = inputs.emplace_back(8000);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto value = static_cast<std::int64_t>(random() >> 16);
        std::memcpy(&data[8 * i], &value, 8);
        sums[i] += value;
      }
    }
    simulator.data() = inputs;
    ASSERT_EQ(simulator.run(), "") << hosts << " hosts";
    Bytes expected(8000);
    std::memcpy(expected.data(), sums.data(), 8000);
    for (const Bytes& data : simulator.data()) ASSERT_EQ(data, expected) << hosts << " hosts";
  }
}

}  // namespace
}  // namespace elastic::plan
