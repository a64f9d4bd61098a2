#include "rendezvous/protocol/view_change.hpp"

#include <cstddef>
#include <cstdint>
#include <rapidcheck.h>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/protocol/codec.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Member member(std::uint64_t number, bool synced = true) {
  return {"incarnation-" + std::to_string(number),
          {"host", {"10.0.0.1:1"}, "local"},
          7,
          "slot",
          synced};
}

View view(std::uint64_t generation, std::size_t members) {
  View view;
  view.generation = generation;
  for (std::size_t i = 0; i < members; ++i) view.members.push_back(member(i));
  view.lanes = {{5, {}, {}, false}, {0, {}, {}, false}};
  return view;
}

/// The view after the death of the member with `rank`, and after others have joined.
View after(const View& before, std::size_t rank, std::size_t joiners) {
  View next = before;
  ++next.generation;
  next.lost = {before.members[rank].incarnation};
  next.members.erase(next.members.begin() + static_cast<std::ptrdiff_t>(rank));
  for (std::size_t i = 0; i < joiners; ++i) {
    next.members.push_back(member(1000 + i, false));
    next.joined.push_back(next.members.back().incarnation);
  }
  next.cause = "a death";
  return next;
}

TEST(ViewChange, MakesTheNextViewOfTheOneBefore) {
  const View before = view(3, 6);
  View next = after(before, 2, 2);
  next.lanes[0] = {8, {"incarnation-0", "incarnation-1"}, {"incarnation-3"}, true};
  next.left = {"incarnation-5"};
  next.broken = {{"incarnation-0", "incarnation-1"}};
  next.commits = 4;
  next.admitted_at = 4;
  next.below_minimum = true;

  const auto change = change_between(before, next);
  ASSERT_TRUE(change);
  EXPECT_THAT(change->stay, ElementsAre(0, 1, 3, 5));
  EXPECT_EQ(change->added.size(), 2U);
  EXPECT_EQ(apply(*change, before).value(), next);
}

TEST(ViewChange, HasTheSizeOfTheChangeAndNotOfTheJob) {
  const auto bytes = [](std::size_t members) {
    const View before = view(3, members);
    View next = after(before, members / 2, 0);
    next.lanes[0].position = 9;
    for (const Member& its : next.members) {
      (its.incarnation == "incarnation-7" ? next.lanes[0].takers : next.lanes[0].holders)
          .push_back(its.incarnation);
    }
    return encode(AnnounceChange{change_between(before, next).value()}).size();
  };
  EXPECT_LT(bytes(1000), bytes(100) + 40);
  EXPECT_LT(bytes(1000), 600U);
}

TEST(ViewChange, IsRefusedByAWorkerWithAnotherView) {
  const View before = view(3, 4);
  AnnouncedView announced;
  announced.take(std::make_shared<const View>(view(2, 4)));
  const Status status = announced.take(change_between(before, after(before, 0, 0)).value());
  EXPECT_EQ(status.code(), Code::kProtocol);
  EXPECT_THAT(status.message(),
              HasSubstr("view 4 came as a change of view 3, and the latest is 2"));
  EXPECT_EQ(*announced.view(), view(2, 4));
}

TEST(ViewChange, WithRanksThatDoNotExistIsRefused) {
  const View before = view(3, 4);
  const ViewChange right = change_between(before, after(before, 1, 0)).value();
  for (const RankRuns& wrong : {RankRuns{0, 4}, RankRuns{2, 1}, RankRuns{1, 2, 2, 3}, RankRuns{0},
                                RankRuns{0, UINT64_MAX}, RankRuns{UINT64_MAX, UINT64_MAX}}) {
    for (RankRuns ViewChange::*const field :
         {&ViewChange::stay, &ViewChange::synced, &ViewChange::joined, &ViewChange::lost,
          &ViewChange::left}) {
      ViewChange change = right;
      change.*field = wrong;
      EXPECT_EQ(apply(change, before).status().code(), Code::kProtocol);
    }
    ViewChange change = right;
    change.lanes[0].holders = wrong;
    EXPECT_EQ(apply(change, before).status().code(), Code::kProtocol);
  }
}

TEST(ViewChange, ThatCannotBeSaidInRisingRanksIsNone) {
  const View before = view(3, 4);
  View next = after(before, 3, 0);
  std::swap(next.members[0], next.members[1]);
  // They come as members that were added, which is right, if long.
  EXPECT_EQ(apply(change_between(before, next).value(), before).value(), next);
  next = after(before, 3, 0);
  next.lost = {"a stranger"};
  EXPECT_FALSE(change_between(before, next));
}

TEST(ViewChange, IsRightForAnyTwoViews) {
  EXPECT_TRUE(rc::check([] {
    const auto drawn = [](std::uint64_t generation) {
      View made;
      made.generation = generation;
      const auto numbers =
          *rc::gen::unique<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
      for (const std::uint8_t number : numbers)
        made.members.push_back(member(number, *rc::gen::arbitrary<bool>()));
      made.lanes.emplace_back();
      for (const Member& its : made.members) {
        (*rc::gen::arbitrary<bool>() ? made.lanes[0].holders : made.lanes[0].takers)
            .push_back(its.incarnation);
      }
      return made;
    };
    const View before = drawn(1);
    const View next = drawn(2);
    const auto change = change_between(before, next);
    RC_ASSERT(change.has_value());
    RC_ASSERT(apply(*change, before).value() == next);
  }));
}

}  // namespace
}  // namespace elastic::rendezvous
