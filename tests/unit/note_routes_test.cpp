// Where the notes on named tensors go when not all ranks are linked.
#include "coordinator/note_routes.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using Bytes = std::vector<std::byte>;

Bytes note_of(int rank) {
  return {static_cast<std::byte>(rank % 251), std::byte{7}};
}

/// A note that has been sent, and not arrived.
struct OnTheWay {
  int from = 0;
  int to = 0;
  Bytes bytes;
};

/// A note that a rank got to read.
struct Read {
  int at = 0;
  int origin = 0;
  Bytes bytes;
  bool operator==(const Read&) const = default;
};

/// Every rank sends one note. Returns what each rank reads, and the most ranks that one deals with.
std::pair<std::vector<Read>, std::size_t> exchange(int size, bool all_linked) {
  std::vector<NoteRoutes> ranks;
  std::size_t most_peers = 0;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back(rank, size, all_linked);
    most_peers = std::max(most_peers, ranks.back().peers().size());
  }
  std::deque<OnTheWay> on_the_way;
  for (int rank = 0; rank < size; ++rank) {
    const NoteRoutes& routes = ranks[static_cast<std::size_t>(rank)];
    const Bytes wrapped = routes.wrap(note_of(rank));
    for (const int to : routes.targets()) on_the_way.push_back({rank, to, wrapped});
  }
  std::vector<Read> read;
  for (; !on_the_way.empty(); on_the_way.pop_front()) {
    const OnTheWay note = on_the_way.front();
    const auto arrived = ranks[static_cast<std::size_t>(note.to)].arrive(note.from, note.bytes);
    EXPECT_TRUE(arrived.ok()) << arrived.status().message();
    if (!arrived.ok()) break;
    for (const int to : arrived.value().pass_to) on_the_way.push_back({note.to, to, note.bytes});
    const auto& own = arrived.value().own;
    if (!own.empty()) read.push_back({note.to, arrived.value().origin, {own.begin(), own.end()}});
  }
  return {read, most_peers};
}

TEST(NoteRoutes, LeadFromEveryFollowerToTheLeaderAndFromTheLeaderToAll) {
  for (const int size : {1, 2, 3, 8, 17, 64, 100}) {
    for (const bool all_linked : {true, false}) {
      const auto [read, most_peers] = exchange(size, all_linked);
      EXPECT_EQ(read.size(), 2 * static_cast<std::size_t>(size - 1));
      for (int follower = 1; follower < size; ++follower) {
        const Read at_leader{0, follower, note_of(follower)};
        const Read at_follower{follower, 0, note_of(0)};
        EXPECT_EQ(std::ranges::count(read, at_leader), 1) << follower << " of " << size;
        EXPECT_EQ(std::ranges::count(read, at_follower), 1) << follower << " of " << size;
      }
      if (!all_linked) {
        EXPECT_LE(static_cast<double>(most_peers), std::ceil(std::log2(size)) + 1);
      }
    }
  }
}

TEST(NoteRoutes, RefuseANoteWithoutAnOrigin) {
  const NoteRoutes leader(0, 20, false);
  EXPECT_EQ(leader.arrive(1, Bytes(3)).status().code(), Code::kProtocol);
  EXPECT_EQ(leader.arrive(1, Bytes(6)).status().code(), Code::kProtocol) << "from rank 0";
  Bytes far(6);
  far[0] = std::byte{20};
  EXPECT_EQ(leader.arrive(1, far).status().code(), Code::kProtocol) << "from no rank";
}

}  // namespace
}  // namespace elastic::coordinator
