#include "coordinator/ledger.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using Step = Ledger::Step;
using ::testing::HasSubstr;

LaneOrders orders(std::uint64_t generation, std::uint64_t position, HandoverRole role,
                  bool lost = false) {
  return {generation, position, role, lost};
}

void enter(Ledger& ledger, const LaneOrders& orders) {
  const Status entered = ledger.enter(orders);
  EXPECT_TRUE(entered.ok()) << entered.message();
}

TEST(Ledger, CountsOperationsFromWhereTheFirstViewStands) {
  Ledger ledger;
  enter(ledger, orders(3, 40, HandoverRole::kNone));
  EXPECT_EQ(ledger.position(), 40U);
  EXPECT_EQ(ledger.next(), Step::kAttempt);
  ledger.begun("root");
  EXPECT_EQ(ledger.needs(), "root");
  ledger.completed();
  EXPECT_EQ(ledger.position(), 41U);
  EXPECT_EQ(ledger.needs(), "");
}

TEST(Ledger, BeginsWhereItWasFirstAnnouncedThoughThatViewWasReplaced) {
  Ledger ledger;
  ledger.begin_at(7);
  ledger.begin_at(8);
  enter(ledger, orders(5, 8, HandoverRole::kTaker));
  EXPECT_EQ(ledger.position(), 7U);
}

TEST(Ledger, ASenderSendsBeforeAnythingElseOncePerView) {
  Ledger ledger;
  enter(ledger, orders(1, 10, HandoverRole::kSender));
  EXPECT_EQ(ledger.next(), Step::kHandOver);
  ledger.handed_over();
  EXPECT_EQ(ledger.position(), 10U);
  EXPECT_EQ(ledger.next(), Step::kAttempt);
  enter(ledger, orders(2, 10, HandoverRole::kSender));
  EXPECT_EQ(ledger.next(), Step::kHandOver);
}

TEST(Ledger, WhatWasTakenIsTheResultOfTheCallThatWasInterrupted) {
  Ledger ledger;
  ledger.begin_at(9);
  ledger.begun("root");
  enter(ledger, orders(2, 10, HandoverRole::kTaker));
  EXPECT_EQ(ledger.next(), Step::kHandOver);
  ledger.handed_over();
  EXPECT_EQ(ledger.position(), 10U);
  EXPECT_EQ(ledger.needs(), "");
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  // Another view does not discard the result before the caller has fetched it.
  enter(ledger, orders(3, 10, HandoverRole::kNone));
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  ledger.delivered();
  EXPECT_EQ(ledger.next(), Step::kAttempt);
}

TEST(Ledger, AViewInWhichALinkFailedIsOverForTheLane) {
  Ledger ledger;
  enter(ledger, orders(1, 0, HandoverRole::kNone));
  ledger.spoiled();
  EXPECT_TRUE(ledger.is_spoiled());
  enter(ledger, orders(2, 0, HandoverRole::kNone));
  EXPECT_FALSE(ledger.is_spoiled());
}

/// Otherwise a holder could complete operation P while a taker still lacks P-1. If the holder then
/// entered another view, the taker would be two operations behind, and only one result is kept.
TEST(Ledger, ALostOperationIsOverOnlyWhenAllMembersHaveMet) {
  Ledger ledger;
  enter(ledger, orders(4, 10, HandoverRole::kSender, true));
  ledger.handed_over();
  EXPECT_EQ(ledger.next(), Step::kEndAsLost);
  ledger.begun("the dead root");
  EXPECT_EQ(ledger.position(), 10U);
  ledger.spoiled();
  // It was not met: the next view has it as lost again, because this one still needs the root.
  EXPECT_EQ(ledger.needs(), "the dead root");
  enter(ledger, orders(5, 10, HandoverRole::kNone, true));
  EXPECT_EQ(ledger.next(), Step::kEndAsLost);
  ledger.completed();
  EXPECT_EQ(ledger.position(), 11U);
  EXPECT_EQ(ledger.next(), Step::kAttempt);
}

TEST(Ledger, ATakerGetsItsResultBeforeTheNextOperationIsLost) {
  Ledger ledger;
  ledger.begin_at(9);
  enter(ledger, orders(4, 10, HandoverRole::kTaker, true));
  ledger.handed_over();
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  ledger.delivered();
  EXPECT_EQ(ledger.next(), Step::kEndAsLost);
}

/// A rank that returns takes the error away from those that lack it; they would replay the
/// operation without that rank.
TEST(Ledger, AnErrorIsDeliveredOnlyWhenNoRankCanReplayTheOperation) {
  Ledger ledger;
  enter(ledger, orders(1, 10, HandoverRole::kNone));
  ledger.begun("");
  EXPECT_TRUE(ledger.is_open());
  ledger.completed_in_error();
  EXPECT_EQ(ledger.position(), 11U);
  EXPECT_EQ(ledger.next(), Step::kSettle);
  LaneOrders sending = orders(2, 11, HandoverRole::kSender);
  sending.has_takers = true;
  enter(ledger, sending);
  EXPECT_EQ(ledger.next(), Step::kHandOver);
  ledger.handed_over();
  EXPECT_EQ(ledger.next(), Step::kSettle);
  // Another holder hands the error over.
  LaneOrders watching = orders(3, 11, HandoverRole::kNone);
  watching.has_takers = true;
  enter(ledger, watching);
  EXPECT_EQ(ledger.next(), Step::kSettle);
  EXPECT_TRUE(ledger.is_open());
  ledger.settled();
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  ledger.delivered();
  EXPECT_FALSE(ledger.is_open());
  EXPECT_EQ(ledger.next(), Step::kAttempt);
}

TEST(Ledger, AnErrorThatNoRankLacksNeedNotBeSettled) {
  Ledger ledger;
  enter(ledger, orders(1, 10, HandoverRole::kNone));
  ledger.begun("");
  ledger.completed_in_error();
  enter(ledger, orders(2, 11, HandoverRole::kNone));
  EXPECT_EQ(ledger.next(), Step::kDeliver);
}

TEST(Ledger, AnErrorThatWasTakenIsSettledAResultIsNot) {
  Ledger ledger;
  ledger.begin_at(9);
  ledger.begun("");
  LaneOrders taking = orders(2, 10, HandoverRole::kTaker);
  taking.has_takers = true;
  enter(ledger, taking);
  ledger.handed_over(/*error=*/true);
  EXPECT_EQ(ledger.next(), Step::kSettle);
  ledger.settled();
  ledger.delivered();
  ledger.begun("");
  taking.generation = 3;
  taking.position = 11;
  enter(ledger, taking);
  ledger.handed_over(/*error=*/false);
  EXPECT_EQ(ledger.next(), Step::kDeliver);
}

/// Going on would repeat an operation, or leave one out.
TEST(Ledger, RefusesAViewThatDoesNotFitWhatIsCompleteHere) {
  for (const auto& [position, role] :
       {std::pair{11U, HandoverRole::kNone}, std::pair{9U, HandoverRole::kNone},
        std::pair{11U, HandoverRole::kSender}, std::pair{10U, HandoverRole::kTaker},
        std::pair{12U, HandoverRole::kTaker}}) {
    Ledger ledger;
    enter(ledger, orders(3, 10, HandoverRole::kNone));
    ledger.spoiled();
    const Status refused = ledger.enter(orders(4, position, role));
    EXPECT_EQ(refused.code(), Code::kInternal);
    EXPECT_THAT(refused.message(),
                HasSubstr("view 4 goes on at operation " + std::to_string(position) +
                          ", but this worker has completed 10"));
    EXPECT_EQ(ledger.position(), 10U);
    EXPECT_EQ(ledger.orders().generation, 3U);
    EXPECT_TRUE(ledger.is_spoiled()) << "nothing goes on";
  }
}

TEST(Ledger, RefusesAnOlderView) {
  Ledger ledger;
  enter(ledger, orders(3, 10, HandoverRole::kNone));
  EXPECT_EQ(ledger.enter(orders(3, 10, HandoverRole::kNone)).code(), Code::kInternal);
  EXPECT_EQ(ledger.enter(orders(2, 10, HandoverRole::kNone)).code(), Code::kInternal);
}

}  // namespace
}  // namespace elastic::coordinator
