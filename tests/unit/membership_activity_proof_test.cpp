#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "membership_fixture.hpp"
#include "rendezvous/membership/activity_proof.hpp"

namespace elastic::rendezvous {
namespace {

constexpr TimePoint kNever = TimePoint::min();

TimePoint at(int ms) {
  return TimePoint(std::chrono::hours(1)) + Milliseconds(ms);
}

View view_at(std::uint64_t generation, const std::vector<std::uint64_t>& positions) {
  View view;
  view.generation = generation;
  for (const std::uint64_t position : positions) view.lanes.push_back({position, {}, {}, false});
  return view;
}

class ActivityProofTest : public testing::Test {
 protected:
  TimePoint told(std::vector<std::uint64_t> positions, int ms, std::uint64_t generation = 1) {
    return activity_proof_.told(view_, {generation, std::move(positions)}, at(ms));
  }
  const View view_ = view_at(1, {100, 7});
  ActivityProof activity_proof_;
};

TEST_F(ActivityProofTest, ThreeOperationsTellThatAllWereThere) {
  EXPECT_EQ(told({100, 7}, 0), kNever);
  EXPECT_EQ(told({101, 7}, 10), kNever);
  EXPECT_EQ(told({102, 7}, 20), kNever);
  EXPECT_EQ(told({103, 7}, 30), at(0));
  EXPECT_EQ(told({104, 7}, 40), at(10));
  EXPECT_EQ(told({104, 7}, 50), at(10)) << "nothing new";
  EXPECT_EQ(told({107, 7}, 60), at(50)) << "the last time that a member was at 104";
  EXPECT_EQ(told({9000, 7}, 70), at(60));
}

TEST_F(ActivityProofTest, EachLaneTells) {
  told({100, 7}, 0);
  EXPECT_EQ(told({101, 9}, 10), kNever) << "not three in one lane";
  EXPECT_EQ(told({101, 10}, 20), at(0));
}

TEST_F(ActivityProofTest, WhoIsBehindTellsNothing) {
  told({103, 7}, 0);
  EXPECT_EQ(told({102, 7}, 10), kNever);
  EXPECT_EQ(told({106, 7}, 20), at(0));
}

TEST_F(ActivityProofTest, BelievesNothingImpossible) {
  told({100, 7}, 0);
  EXPECT_EQ(told({std::numeric_limits<std::uint64_t>::max(), 7}, 10), kNever);
  EXPECT_EQ(told({200}, 10), kNever) << "other lanes";
  EXPECT_EQ(told({200, 7}, 10, 2), kNever) << "of another view";
  EXPECT_EQ(told({103, 7}, 20), at(0));
}

TEST_F(ActivityProofTest, AnotherViewBeginsAnew) {
  told({100, 7}, 0);
  EXPECT_EQ(activity_proof_.told(view_at(2, {103, 7}), {2, {103, 7}}, at(10)), kNever);
  EXPECT_EQ(activity_proof_.told(view_at(2, {103, 7}), {2, {106, 7}}, at(20)), at(10));
}

/// Members that run operations as R1 and R2 allow, in random order, and report their positions.
/// Reports are delayed, but those of one member arrive in order.
class Members {
 public:
  static constexpr int kLatest = 3;

  explicit Members(std::uint64_t seed) : random_(seed), members_(2 + random_() % 4) {}

  std::size_t any() { return random_() % members_.size(); }
  void freeze(std::size_t member) { members_[member].frozen = true; }

  /// Something that `member` does: enters an operation, completes it, or says where it stands.
  void act(std::size_t member, int now) {
    Member& self = members_[member];
    if (self.frozen) return;
    if (random_() % 4 == 0) {
      const int delay = static_cast<int>(random_() % kLatest);
      const int earliest = self.said.empty() ? 0 : self.said.back().arrives;
      self.said.push_back({self.position, std::max(now + delay, earliest)});
    } else if (!self.entered) {
      self.entered = true;
    } else if (all_have_entered(self.position)) {
      ++self.position;
      self.entered = false;
    }
  }
  /// Positions that arrive at `now`.
  std::vector<std::uint64_t> heard(int now) {
    std::vector<std::uint64_t> positions;
    for (Member& member : members_) {
      for (; !member.said.empty() && member.said.front().arrives <= now; member.said.pop_front()) {
        positions.push_back(member.said.front().position);
      }
    }
    return positions;
  }

 private:
  struct Said {
    std::uint64_t position;
    int arrives;
  };
  struct Member {
    std::uint64_t position = 0;
    bool entered = false;
    bool frozen = false;
    std::deque<Said> said;
  };
  bool all_have_entered(std::uint64_t position) const {
    return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
      return member.position > position || (member.position == position && member.entered);
    });
  }

  std::mt19937_64 random_;
  std::vector<Member> members_;
};

/// Reports of others never prove activity of a stalled member later than its own last report could.
TEST(ActivityProofOfMembers, NeverTellsOfAStalledMember) {
  constexpr int kFrozenAt = 500;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Members members(seed);
    ActivityProof proof;
    const View view = view_at(1, {0});
    TimePoint latest = kNever;
    for (int now = 0; now < 2 * kFrozenAt; ++now) {
      if (now == kFrozenAt) {
        ASSERT_GT(latest, at(kFrozenAt / 2)) << "it tells of those that go on";
        members.freeze(members.any());
      }
      members.act(members.any(), now);
      for (const std::uint64_t position : members.heard(now)) {
        latest = std::max(latest, proof.told(view, {1, {position}}, at(now)));
      }
    }
    ASSERT_LT(latest, at(kFrozenAt + Members::kLatest));
  }
}

class ActivityTest : public MembershipTest {
 protected:
  /// "a" says that operations go on, "b" says nothing, for so long.
  void go_on(Milliseconds time) {
    silent_ = {"a", "b"};
    for (Milliseconds passed{0}; passed < time; passed += Milliseconds(50)) {
      pass(Milliseconds(50));
      position_ += 3;
      say("a", Heartbeat{view().generation, {position_, 0}});
    }
  }
  std::uint64_t position_ = 0;
};

TEST_F(ActivityTest, WhoTakesPartIsNotGivenUp) {
  start_with({"a", "b"});
  go_on(Milliseconds(5000));
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_GE(membership_->status(now_).heartbeat_age_ms.at(1), 5000);
}

TEST_F(ActivityTest, WhoStopsIsGivenUpAsIfItHadSpoken) {
  start_with({"a", "b"});
  go_on(Milliseconds(1000));
  silent_.erase("a");
  pass(Milliseconds(440));
  EXPECT_EQ(phase(), Phase::kRunning);
  pass(Milliseconds(20));  // The latest evidence for b is 50 ms older.
  EXPECT_EQ(phase(), Phase::kChanging);
  EXPECT_FALSE(connected_.contains("b"));
}

TEST_F(ActivityTest, TellsNothingOfWhoIsNoMember) {
  start_with({"a"});
  join("b");
  go_on(Milliseconds(550));
  EXPECT_FALSE(connected_.contains("b"));
  EXPECT_THAT(members(), ElementsAre("a"));
}

TEST_F(ActivityTest, WhoIsNoMemberTellsNothing) {
  start_with({"a", "b"});
  join("c");
  silent_ = {"b", "c"};
  for (int i = 1; i <= 11; ++i) {
    pass(Milliseconds(50));
    say("c", Heartbeat{1, {static_cast<std::uint64_t>(3 * i), 0}});
  }
  EXPECT_FALSE(connected_.contains("b"));
}

}  // namespace
}  // namespace elastic::rendezvous
