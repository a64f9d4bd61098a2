#include "collectives/transport/link_pool.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/inproc_pair.hpp"

namespace elastic::transport {
namespace {

class LinkPoolTest : public testing::Test {
 protected:
  /// A stream to `peer` arrives; its other end is kept in `far_`.
  void arrive(const std::string& peer, std::size_t lane, const std::string& link_id,
              std::size_t stream = 0, std::size_t streams = 1, const std::string& via = {}) {
    auto pair = make_inproc_pair(16 * 1024);
    ASSERT_TRUE(pair.ok());
    far_.push_back(std::move(pair.value().second));
    pool_.add({peer, lane, link_id, stream, streams, via, /*generation=*/1,
               std::move(pair.value().first)});
  }
  void arrive_whole(const std::string& peer) {
    arrive(peer, 0, peer + "-0");
    arrive(peer, 1, peer + "-1");
  }

  LinkPool pool_{2};
  std::vector<StreamPtr> far_;
};

TEST_F(LinkPoolTest, APeerIsCompleteWithAllItsLanes) {
  EXPECT_FALSE(pool_.complete("a"));
  arrive("a", 1, "x");
  EXPECT_FALSE(pool_.complete("a"));
  arrive("a", 0, "y");
  EXPECT_TRUE(pool_.complete("a"));
  EXPECT_NE(pool_.find("a", 0), pool_.find("a", 1));
  EXPECT_EQ(pool_.hand_out("a"), (std::vector{pool_.find("a", 0), pool_.find("a", 1)}));
}

TEST_F(LinkPoolTest, ALinkIsThereWhenAllItsStreamsAre) {
  arrive("a", 0, "x", 1, 3);
  arrive("a", 0, "x", 0, 3);
  EXPECT_EQ(pool_.find("a", 0), nullptr);
  arrive("a", 0, "x", 2, 3);
  EXPECT_NE(pool_.find("a", 0), nullptr);
}

/// A worker waits longer for a link of many streams that comes further, but not for one that is
/// begun again and again.
TEST_F(LinkPoolTest, AStreamMoreThanThereEverWereIsProgress) {
  EXPECT_EQ(pool_.progress("a"), TimePoint::min());
  const TimePoint before = Clock::now();
  arrive("a", 0, "x", 0, 3);
  const TimePoint first = pool_.progress("a");
  EXPECT_GE(first, before);
  EXPECT_EQ(pool_.streams("a", 0), 1U);

  arrive("a", 0, "y", 0, 3);
  EXPECT_EQ(pool_.progress("a"), first) << "begun again";
  arrive("a", 0, "y", 1, 3);
  EXPECT_GT(pool_.progress("a"), first);
  EXPECT_EQ(pool_.streams("a", 0), 2U);
  EXPECT_EQ(pool_.progress("b"), TimePoint::min());

  pool_.keep_only({"a"});
  EXPECT_EQ(pool_.progress("a"), TimePoint::min()) << "of another view";
}

TEST_F(LinkPoolTest, LinksThatAViewStillUsesAreCounted) {
  arrive("a", 0, "x", 0, 2);
  EXPECT_EQ(pool_.descriptors(), 0U);
  arrive("a", 0, "x", 1, 2);
  LinkPtr used = pool_.hand_out("a", 0);
  pool_.clear();
  EXPECT_EQ(pool_.descriptors(), 2U);
  used.reset();
  EXPECT_EQ(pool_.descriptors(), 0U);
}

TEST_F(LinkPoolTest, ANewerLinkReplacesHalfOfOneAndAWholeOne) {
  arrive("a", 0, "half", 0, 2);
  arrive("a", 0, "whole");
  const LinkPtr whole = pool_.find("a", 0);
  ASSERT_NE(whole, nullptr);
  arrive("a", 0, "half", 1, 2);  // its first stream was dropped
  EXPECT_EQ(pool_.find("a", 0), nullptr);
  arrive("a", 0, "newer");
  ASSERT_NE(pool_.find("a", 0), nullptr);
  EXPECT_NE(pool_.find("a", 0), whole);
}

TEST_F(LinkPoolTest, WhatMakesNoSenseIsDropped) {
  arrive("a", 2, "x");
  arrive("a", 0, "x", 1, 1);
  EXPECT_EQ(pool_.peers(), 0U);
}

TEST_F(LinkPoolTest, WhoComesBeforeItsViewSurvivesOneViewChange) {
  arrive_whole("early");
  pool_.keep_only({"other"});
  EXPECT_TRUE(pool_.complete("early"));
  pool_.keep_only({"other"});
  EXPECT_EQ(pool_.peers(), 0U);
}

TEST_F(LinkPoolTest, WhoComesBackBeforeItsViewSurvivesOneViewChange) {
  arrive_whole("a");
  pool_.keep_only({"a"});
  arrive("a", 0, "again");
  pool_.keep_only({});
  EXPECT_NE(pool_.find("a", 0), nullptr);
}

TEST_F(LinkPoolTest, WhatWasHandedOutIsForgottenWithItsView) {
  arrive_whole("a");
  pool_.hand_out("a");
  pool_.keep_only({});
  EXPECT_EQ(pool_.peers(), 0U);
}

TEST_F(LinkPoolTest, KeptLinksStayTheSame) {
  arrive_whole("a");
  const auto links = pool_.hand_out("a");
  for (int view = 0; view < 3; ++view) pool_.keep_only({"a", "b"});
  pool_.drop_dead();
  EXPECT_EQ(pool_.hand_out("a"), links);
}

TEST_F(LinkPoolTest, LinksToTheDeadDoNotPileUp) {
  for (int peer = 0; peer < 20; ++peer) {
    arrive_whole("dead " + std::to_string(peer));
  }
  far_.clear();
  arrive_whole("alive");
  pool_.drop_dead();
  EXPECT_EQ(pool_.peers(), 1U);
  EXPECT_TRUE(pool_.complete("alive"));
}

TEST_F(LinkPoolTest, ALinkThatIsReplacedEndsForWhoeverStillUsesIt) {
  arrive("a", 0, "older");
  const LinkPtr older = pool_.find("a", 0);
  arrive("a", 0, "newer");
  EXPECT_TRUE(older->hung_up());
  EXPECT_FALSE(pool_.find("a", 0)->hung_up());
}

TEST_F(LinkPoolTest, ARelayedLinkEndsWithTheMembershipOfTheRelay) {
  arrive("a", 0, "x", 0, 1, "relay");
  arrive("a", 1, "y");
  const LinkPtr relayed = pool_.find("a", 0);
  pool_.hand_out("a");
  pool_.keep_only({"a", "relay"});
  EXPECT_EQ(pool_.find("a", 0), relayed);
  pool_.keep_only({"a"});
  EXPECT_EQ(pool_.find("a", 0), nullptr);
  EXPECT_TRUE(relayed->hung_up());
  EXPECT_NE(pool_.find("a", 1), nullptr);
}

TEST_F(LinkPoolTest, OnlyTheDeadLaneIsDropped) {
  arrive_whole("a");
  const LinkPtr good = pool_.find("a", 1);
  far_.front().reset();
  pool_.drop_dead();
  EXPECT_EQ(pool_.find("a", 0), nullptr);
  EXPECT_EQ(pool_.find("a", 1), good);
}

TEST_F(LinkPoolTest, BytesOfALinkCountAlsoWhenItIsGone) {
  arrive_whole("a");
  pool_.find("a", 0)->count(100);
  pool_.find("a", 1)->send({});
  const std::uint64_t frame = pool_.find("a", 1)->bytes()->bytes();
  EXPECT_GT(frame, 0U) << "the header of an empty message";
  EXPECT_EQ(pool_.traffic().tcp, 100 + frame);
  pool_.hand_out("a");
  pool_.keep_only({});
  EXPECT_EQ(pool_.traffic().tcp, 100 + frame);
  arrive_whole("b");
  pool_.find("b", 0)->count(1);
  EXPECT_EQ(pool_.traffic().tcp, 101 + frame);
  EXPECT_EQ(pool_.traffic().shm, 0U);
}

}  // namespace
}  // namespace elastic::transport
