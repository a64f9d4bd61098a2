// Where the notes on named tensors go, with links between all ranks and along a tree.
#include "coordinator/note_routes.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<NoteRoutes> routes_of(int size, bool all_linked) {
  std::vector<NoteRoutes> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(rank, size, all_linked);
  return ranks;
}

const NoteRoutes& at(const std::vector<NoteRoutes>& ranks, int rank) {
  return ranks[static_cast<std::size_t>(rank)];
}

const auto kSizes = {1, 2, 3, 8, 17, 64, 100};

TEST(NoteRoutes, LeadFromTheLeaderToAll) {
  const Bytes note = {std::byte{2}, std::byte{7}};
  for (const int size : kSizes) {
    for (const bool all_linked : {true, false}) {
      const auto ranks = routes_of(size, all_linked);
      const Bytes wrapped = ranks[0].wrap({{0, 1}, note});
      std::vector<int> read(static_cast<std::size_t>(size), 0);
      std::deque<std::pair<int, int>> on_the_way;  // from, to
      for (const int to : ranks[0].targets()) on_the_way.emplace_back(0, to);
      for (; !on_the_way.empty(); on_the_way.pop_front()) {
        const auto [from, to] = on_the_way.front();
        const auto arrived = at(ranks, to).arrive(from, wrapped);
        ASSERT_TRUE(arrived.ok()) << arrived.status().message();
        EXPECT_EQ(arrived.value().from, (RankRange{0, 1}));
        EXPECT_TRUE(std::ranges::equal(arrived.value().note, note));
        ++read[static_cast<std::size_t>(to)];
        for (const int next : arrived.value().pass_to) on_the_way.emplace_back(to, next);
      }
      EXPECT_EQ(std::ranges::count(read, 1), size - 1) << size;
      EXPECT_EQ(read[0], 0);
    }
  }
}

// The subtrees of the ranks that send to a rank follow it, and do not overlap.
TEST(NoteRoutes, GatherTheNotesOfEachRankOnce) {
  for (const int size : kSizes) {
    const auto ranks = routes_of(size, false);
    for (int rank = 0; rank < size; ++rank) {
      std::vector<int> below;
      for (const int peer : at(ranks, rank).peers()) {
        if (at(ranks, peer).targets() == std::vector<int>{rank} && peer > 0) below.push_back(peer);
      }
      std::ranges::sort(below);
      int next = rank + 1;
      for (const int child : below) {
        EXPECT_EQ(at(ranks, child).subtree().first, next);
        next = at(ranks, child).subtree().end();
      }
      EXPECT_EQ(next, at(ranks, rank).subtree().end()) << rank << " of " << size;
      EXPECT_LE(below.size(), static_cast<std::size_t>(std::bit_width(unsigned(size))));
    }
    EXPECT_EQ(ranks[0].subtree(), (RankRange{0, size}));
  }
}

TEST(NoteRoutes, CarryTheRanksThatANoteIsOf) {
  const auto ranks = routes_of(20, false);
  const Bytes note = {std::byte{2}, std::byte{7}};
  for (const RankRange from : {RankRange{8, 1}, RankRange{8, 8}, RankRange{12, 3}}) {
    const auto arrived = ranks[0].arrive(8, ranks[8].wrap({from, note}));
    ASSERT_TRUE(arrived.ok()) << arrived.status().message();
    EXPECT_EQ(arrived.value().from, from);
    EXPECT_TRUE(arrived.value().pass_to.empty());
  }
}

TEST(NoteRoutes, RefuseANoteThatIsNotOfRanksBelowItsSender) {
  const auto ranks = routes_of(20, false);
  EXPECT_EQ(ranks[0].arrive(8, Bytes(7)).status().code(), Code::kProtocol) << "too short";
  const Bytes note = {std::byte{2}};
  for (const RankRange from :
       {RankRange{0, 1}, RankRange{8, 0}, RankRange{7, 2}, RankRange{8, 9}, RankRange{15, 2},
        RankRange{16, 1}, RankRange{8, -1}, RankRange{-1, 10}}) {
    const auto arrived = ranks[0].arrive(8, ranks[8].wrap({from, note}));
    EXPECT_EQ(arrived.status().code(), Code::kProtocol) << from.first << " " << from.count;
  }
}

}  // namespace
}  // namespace elastic::coordinator
