// Messages over every transport: order, sizes, operations that come early or late, failures.
#include "transport_contract.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "collectives/transport/mesh.hpp"
#include "tests/slowness.hpp"

namespace elastic::transport {
namespace {

TEST_P(TransportContract, MessagesArriveInOrderWhateverTheirSize) {
  begin_both(tag_at(0));
  std::vector<ByteVector> sent;
  std::vector<ByteVector> got;
  for (const std::size_t bytes : {1U, 0U, 7U, 64U, 4095U, 4096U, 0U, 100'000U, 3U}) {
    sent.push_back(pattern(bytes, sent.size()));
    got.emplace_back(bytes);
  }
  for (const ByteVector& message : sent) near_->send(message);
  for (ByteVector& message : got) far_->receive({message});
  const Status status = pump([&] { return far_->received() == got.size() && near_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(near_->sent(), sent.size());
}

TEST_P(TransportContract, LargeMessagesPassEachOtherInBothDirections) {
  pass_each_other(tag_at(0), 5'000'011);  // more than any ring or socket buffer here holds
}

TEST_P(TransportContract, ReceivedElementsAreCombined) {
  constexpr std::size_t kElements = 200'003;
  begin_both(tag_at(0));
  std::vector<std::int32_t> from(kElements);
  std::iota(from.begin(), from.end(), 5);
  std::vector<std::int32_t> into(kElements, 1000);
  const ByteVector odd = pattern(3, 9);  // so that elements lie across every boundary of the ring
  ByteVector odd_into(3);
  near_->send(odd);
  near_->send(std::as_bytes(std::span(from)));
  far_->receive({odd_into});
  far_->receive({std::as_writable_bytes(std::span(into)), {add_i32, 4}});
  const Status status = pump([&] { return far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::size_t i = 0; i < kElements; ++i) ASSERT_EQ(into[i], 1000 + from[i]) << i;
}

TEST_P(TransportContract, AMessageWaitsUntilItsPlaceIsKnown) {
  begin_both(tag_at(0));
  const ByteVector sent = pattern(300'000, 1);
  near_->send(sent);
  pump_until_idle();
  EXPECT_EQ(far_->received(), 0U);
  ByteVector got(sent.size());
  far_->receive({got});
  const Status status = pump([&] { return far_->complete() && near_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(got == sent);
}

/// Without bytes of its own, but what waits for it can go on: a thread that took this for no move
/// would sleep, and so would its peers.
TEST_P(TransportContract, AnEmptyMessageThatCameEarlyIsAMove) {
  begin_both(tag_at(0));
  near_->send({});
  pump_until_idle();
  ASSERT_EQ(far_->received(), 0U);
  far_->receive({});
  bool moved = false;
  ASSERT_TRUE(far_->progress(moved).ok());
  EXPECT_EQ(far_->received(), 1U);
  EXPECT_TRUE(moved);
}

TEST_P(TransportContract, ALaterOperationWaitsUntilItBegins) {
  begin_both(tag_at(4));
  near_->begin(tag_at(5), kCall);
  near_->send(as_payload("later"));
  pump_until_idle();
  EXPECT_EQ(far_->received(), 0U);
  far_->begin(tag_at(5), kCall);
  ByteVector got(5);
  far_->receive({got});
  const Status status = pump([&] { return far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::ranges::equal(got, as_payload("later")));
}

TEST_P(TransportContract, WhatAnOlderViewSendsIsDropped) {
  near_->begin(tag_at(9, 1), kCall);
  far_->begin(tag_at(3, 2), kCall);
  ByteVector got(5);
  far_->receive({got});
  const ByteVector stale = pattern(400'000, 1);
  near_->send(stale);
  ASSERT_TRUE(pump([&] { return near_->complete(); }).ok());
  near_->begin(tag_at(3, 2), kCall);
  near_->send(as_payload("fresh"));
  const Status status = pump([&] { return far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::ranges::equal(got, as_payload("fresh")));
}

TEST_P(TransportContract, ALinkSurvivesASenderThatGivesUpInTheMiddle) {
  begin_both(tag_at(0));
  ByteVector large = ByteVector(64 << 20);
  ByteVector into(large.size());
  near_->send(large);
  far_->receive({into});
  bool moved = false;
  ASSERT_TRUE(near_->progress(moved).ok());
  ASSERT_TRUE(far_->progress(moved).ok());
  ASSERT_EQ(near_->sent(), 0U) << "the message was meant to be too large";
  near_->abandon();
  far_->abandon();
  ByteVector().swap(large);  // neither end may touch them any more
  ByteVector().swap(into);
  begin_both(tag_at(0, 2));
  near_->send(as_payload("next"));
  ByteVector got(4);
  far_->receive({got});
  const Status status = pump([&] { return far_->complete() && near_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::ranges::equal(got, as_payload("next")));
}

TEST_P(TransportContract, ALinkSurvivesAReceiverThatGivesUpInTheMiddle) {
  begin_both(tag_at(0));
  const ByteVector large = pattern(2'000'000, 1);
  ByteVector into(large.size());
  near_->send(large);
  far_->receive({into});
  bool moved = false;
  ASSERT_TRUE(near_->progress(moved).ok());
  ASSERT_TRUE(far_->progress(moved).ok());
  far_->abandon();
  ByteVector().swap(into);
  far_->begin(tag_at(0, 2), kCall);
  ASSERT_TRUE(pump([&] { return near_->complete(); }).ok());
  near_->begin(tag_at(0, 2), kCall);
  near_->send(as_payload("next"));
  ByteVector got(4);
  far_->receive({got});
  const Status status = pump([&] { return far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::ranges::equal(got, as_payload("next")));
}

TEST_P(TransportContract, AnotherCallIsAMismatchThatNamesBoth) {
  near_->begin(tag_at(0), kCall);
  far_->begin(tag_at(0), {2, 7, 0, 1, 3, 16});
  far_->send(as_payload("x"));
  const Status status = failure_of_near();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(status.peer(), 1);
  EXPECT_NE(status.message().find("this rank called allreduce of 1024 f32, sum, rank 1 called "
                                  "broadcast of 16 i64 from rank 3"),
            std::string::npos)
      << status.message();
  EXPECT_FALSE(near_->broken());
}

TEST_P(TransportContract, AMismatchFoundElsewhereAbortsTheOperation) {
  begin_both(tag_at(0));
  far_->begin({1, 0, OpTag::kAbortOperation}, {});
  far_->send(as_payload("say"));
  const Status status = failure_of_near();
  EXPECT_EQ(status.code(), Code::kOperationAborted);
  EXPECT_FALSE(near_->broken());
  near_->abandon();
  near_->begin({1, 0, OpTag::kAbortOperation}, {});
  ByteVector got(3);
  near_->receive({got});
  ASSERT_TRUE(pump([&] { return near_->complete(); }).ok());
  EXPECT_TRUE(std::ranges::equal(got, as_payload("say")));
  begin_both(tag_at(1));
  near_->send(as_payload("on"));
  ByteVector after(2);
  far_->receive({after});
  EXPECT_TRUE(pump([&] { return far_->complete(); }).ok());
}

TEST_P(TransportContract, FramesOfAnAbortedOperationAreDropped) {
  near_->begin(tag_at(0), kCall);
  near_->send(as_payload("stale"));
  far_->begin({1, 0, OpTag::kAbortOperation}, {});
  ByteVector got(2);
  far_->receive({got});
  pump_until_idle();
  near_->begin({1, 0, OpTag::kAbortOperation}, {});
  near_->send(as_payload("ok"));
  ASSERT_TRUE(pump([&] { return far_->complete(); }).ok());
  EXPECT_TRUE(std::ranges::equal(got, as_payload("ok")));
}

TEST_P(TransportContract, NotesComeInOrderBesideMessages) {
  begin_both(tag_at(0));
  std::vector<ByteVector> notes;
  for (std::size_t i = 0; i < 20; ++i) notes.push_back(pattern(i * 5000, i));
  const ByteVector message = pattern(200'000, 77);
  ByteVector got(message.size());
  far_->receive({got});
  near_->send(message);
  for (const ByteVector& note : notes) near_->send_note(1, note);
  std::vector<ByteVector> taken;
  const Status status = pump([&] {
    while (auto note = far_->take_note(1)) taken.push_back(*note);
    return taken.size() == notes.size() && far_->complete();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(taken, notes);
  EXPECT_TRUE(got == message);
}

TEST_P(TransportContract, NotesOfOlderViewsAreDroppedAndOfLaterOnesKept) {
  begin_both(tag_at(0));
  near_->send_note(1, pattern(10, 1));
  near_->send_note(2, pattern(10, 2));
  near_->send_note(3, pattern(10, 3));
  EXPECT_EQ(note_at_far(2), pattern(10, 2));
  EXPECT_EQ(far_->take_note(2), std::nullopt);
  EXPECT_EQ(note_at_far(3), pattern(10, 3));
}

TEST_P(TransportContract, ANoteThatWaitsToBeSentKeepsTheThreadAwake) {
  begin_both(tag_at(0));
  pump_until_idle();
  near_->send_note(1, pattern(10, 1));
  std::vector<pollfd> watched;
  EXPECT_FALSE(near_->prepare_wait(watched));
  near_->finish_wait();
}

TEST_P(TransportContract, APeerThatClosesIsLostOnceEverythingIsRead) {
  begin_both(tag_at(0));
  ByteVector got(4);
  near_->receive({got});
  far_->send(as_payload("last"));
  bool moved = false;
  ASSERT_TRUE(far_->progress(moved).ok());
  far_.reset();
  const Status status = failure_of_near();
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
  EXPECT_EQ(status.peer(), 1);
  EXPECT_TRUE(near_->broken());
  EXPECT_EQ(near_->received(), 1U);
}

TEST_P(TransportContract, APeerThatIsDoneAndGoneFailsNothingThatIsComplete) {
  begin_both(tag_at(0));
  ByteVector got(4);
  const LinkPtr near = std::move(near_);
  near->receive({got});
  far_->send(as_payload("last"));
  bool moved = false;
  ASSERT_TRUE(far_->progress(moved).ok());
  far_.reset();
  Mesh mesh(0, {nullptr, near});
  const Status status = mesh.run_until([&] { return near->received() == 1; });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::ranges::equal(got, as_payload("last")));
  EXPECT_EQ(mesh.run_until([] { return false; }).code(), Code::kPeerLost);
}

TEST_P(TransportContract, StripesOfAPeerThatIsGoneAreReadFromAllStreams) {
  constexpr std::size_t kBytes = 60'000;  // fits whatever lies between the ends
  connect_bare();
  near_->begin(tag_at(0), kCall);
  const ByteVector sent = pattern(kBytes, 1);
  // One message on each stream, the later ones on the earlier streams.
  const std::size_t streams = bare_.size();
  std::vector<ByteVector> got(streams, ByteVector(kBytes));
  for (std::size_t i = 0; i < streams; ++i) {
    write_frame(*bare_[i], static_cast<std::uint32_t>(streams - 1 - i), 0, sent);
  }
  bare_.clear();
  const LinkPtr near = std::move(near_);
  for (ByteVector& message : got) near->receive({message});
  Mesh mesh(0, {nullptr, near});
  const Status status = mesh.run_until([&] { return near->received() == streams; });
  EXPECT_TRUE(status.ok()) << status.message();
  for (const ByteVector& message : got) EXPECT_TRUE(message == sent);
}

TEST_P(TransportContract, ALostPeerIsNoticedBehindAnOperationThatHasNotBegun) {
  begin_both(tag_at(0));
  far_->begin(tag_at(1), kCall);
  far_->send(as_payload("of the next operation"));
  pump_until_idle();
  far_.reset();
  EXPECT_EQ(failure_of_near().code(), Code::kPeerLost);
}

TEST_P(TransportContract, HangingUpShowsWithoutTouchingTheLink) {
  EXPECT_FALSE(near_->hung_up());
  far_.reset();
  EXPECT_TRUE(sees_the_end(*near_));
}

TEST_P(TransportContract, RandomSchedulesArriveWhole) {
  constexpr std::uint64_t kSeeds = 20 / kSlowness;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    begin_both(tag_at(seed));
    const auto any_size = [&random] {
      const std::uint64_t shape = random() % 4;
      return shape == 0 ? random() % 3 : random() % (shape == 1 ? 600'000 : 9'000);
    };
    std::array<std::vector<ByteVector>, 2> sent;
    std::array<std::vector<ByteVector>, 2> got;
    std::array<Link*, 2> from = {near_.get(), far_.get()};
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::uint64_t i = random() % 30; i > 0; --i)
        sent[side].push_back(pattern(any_size(), i));
      for (const ByteVector& message : sent[side]) got[side].emplace_back(message.size());
    }
    std::array<std::size_t, 2> posted_out = {0, 0};
    std::array<std::size_t, 2> posted_in = {0, 0};
    const Status status = pump([&] {
      bool all = true;
      for (std::size_t side = 0; side < 2; ++side) {
        Link& out = *from[side];
        Link& in = *from[1 - side];
        if (posted_out[side] < sent[side].size() && random() % 3 == 0) {
          out.send(sent[side][posted_out[side]++]);
        }
        if (posted_in[side] < got[side].size() && random() % 3 == 0) {
          in.receive({got[side][posted_in[side]++]});
        }
        all = all && out.sent() == sent[side].size() && in.received() == got[side].size();
      }
      return all;
    });
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(got == sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, TransportContract, testing::ValuesIn(stream_wirings()),
                         wiring_name);

}  // namespace
}  // namespace elastic::transport
