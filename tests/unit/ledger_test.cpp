#include "coordinator/ledger.hpp"

#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using Handover = LaneOrders::Handover;
using Step = Ledger::Step;

LaneOrders orders(std::uint64_t generation, std::uint64_t position, Handover handover,
                  bool lost = false) {
  return {generation, position, handover, lost};
}

TEST(Ledger, CountsOperationsFromWhereTheFirstViewStands) {
  Ledger ledger;
  ledger.enter(orders(3, 40, Handover::kNothing));
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
  ledger.enter(orders(5, 8, Handover::kTake));
  EXPECT_EQ(ledger.position(), 7U);
}

TEST(Ledger, AGiverGivesBeforeAnythingElseOncePerView) {
  Ledger ledger;
  ledger.enter(orders(1, 10, Handover::kGive));
  EXPECT_EQ(ledger.next(), Step::kHandOver);
  ledger.handed_over();
  EXPECT_EQ(ledger.position(), 10U);
  EXPECT_EQ(ledger.next(), Step::kAttempt);
  ledger.enter(orders(2, 10, Handover::kGive));
  EXPECT_EQ(ledger.next(), Step::kHandOver);
}

TEST(Ledger, WhatWasTakenIsTheResultOfTheCallThatWasInterrupted) {
  Ledger ledger;
  ledger.begin_at(9);
  ledger.begun("root");
  ledger.enter(orders(2, 10, Handover::kTake));
  EXPECT_EQ(ledger.next(), Step::kHandOver);
  ledger.handed_over();
  EXPECT_EQ(ledger.position(), 10U);
  EXPECT_EQ(ledger.needs(), "");
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  // Another view does not take it away from a caller who was elsewhere.
  ledger.enter(orders(3, 10, Handover::kNothing));
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  ledger.delivered();
  EXPECT_EQ(ledger.next(), Step::kAttempt);
}

TEST(Ledger, AViewInWhichALinkFailedIsOverForTheLane) {
  Ledger ledger;
  ledger.enter(orders(1, 0, Handover::kNothing));
  ledger.spoiled();
  EXPECT_TRUE(ledger.is_spoiled());
  ledger.enter(orders(2, 0, Handover::kNothing));
  EXPECT_FALSE(ledger.is_spoiled());
}

/// Otherwise a giver could be done with operation P while a taker still lacks P-1; were the giver's
/// next view another one, the taker would be two operations behind, beyond what is kept for it.
TEST(Ledger, ALostOperationIsOverOnlyWhenAllMembersHaveMet) {
  Ledger ledger;
  ledger.enter(orders(4, 10, Handover::kGive, true));
  ledger.handed_over();
  EXPECT_EQ(ledger.next(), Step::kEndAsLost);
  ledger.begun("the dead root");
  EXPECT_EQ(ledger.position(), 10U);
  ledger.spoiled();
  // It was not met: the next view has it as lost again, because this one still needs the root.
  EXPECT_EQ(ledger.needs(), "the dead root");
  ledger.enter(orders(5, 10, Handover::kNothing, true));
  EXPECT_EQ(ledger.next(), Step::kEndAsLost);
  ledger.completed();
  EXPECT_EQ(ledger.position(), 11U);
  EXPECT_EQ(ledger.next(), Step::kAttempt);
}

TEST(Ledger, ATakerGetsItsResultBeforeTheNextOperationIsLost) {
  Ledger ledger;
  ledger.begin_at(9);
  ledger.enter(orders(4, 10, Handover::kTake, true));
  ledger.handed_over();
  EXPECT_EQ(ledger.next(), Step::kDeliver);
  ledger.delivered();
  EXPECT_EQ(ledger.next(), Step::kEndAsLost);
}

}  // namespace
}  // namespace elastic::coordinator
