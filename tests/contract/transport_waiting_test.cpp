// Over every transport: what ends a sleep, and what one end learns of the other's trouble.
#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <poll.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/event_fd.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/ring/byte_ring.hpp"
#include "collectives/transport/ring/ring_stream.hpp"
#include "tests/slowness.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

TEST_P(TransportContract, AbortEndsAWaitWithoutAnOperation) {
  const LinkPtr near = std::move(near_);
  Mesh mesh(0, {nullptr, near});
  Status status;
  std::thread sleeper([&] { status = mesh.wait(); });
  mesh.abort();
  sleeper.join();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_EQ(mesh.wait().code(), Code::kAborted);  // every later one, too
  bool moved = false;
  EXPECT_EQ(mesh.progress(moved).code(), Code::kAborted);
}

/// The peer's message may be wanted later, so the loss of the peer is no failure yet. Until then
/// nothing moves, and a rank that waits for other peers must be able to sleep.
TEST_P(TransportContract, NothingMovesWhileTheMessageOfALostPeerIsNotWanted) {
  begin_both(tag_at(0));
  far_->send(as_payload("early"));
  pump_until_idle();
  far_.reset();
  ASSERT_TRUE(sees_the_end(*near_));
  const LinkPtr near = std::move(near_);
  Mesh mesh(0, {nullptr, near});
  ASSERT_TRUE(mesh.wait().ok());  // which notices the loss
  constexpr int kRounds = 20;
  int idle = 0;
  for (int i = 0; i < kRounds; ++i) {
    bool moved = false;
    ASSERT_TRUE(mesh.progress(moved).ok());
    idle += moved ? 0 : 1;
  }
  EXPECT_GE(idle, kRounds - 4);
}

/// Gives its link when a test says so.
class KeptBack final : public LinkSource {
 public:
  void request(int rank, Arrived arrived) override {
    EXPECT_EQ(rank, 1);
    asked_.set_value(std::move(arrived));
  }
  Arrived asked() { return asked_.get_future().get(); }

 private:
  std::promise<Arrived> asked_;
};

TEST_P(TransportContract, ARequiredLinkComesIntoTheOperation) {
  const auto source = std::make_shared<KeptBack>();
  Mesh mesh(0, {nullptr, nullptr}, std::make_shared<EventFd>(), source);
  EXPECT_FALSE(mesh.has_all_links());
  mesh.begin(tag_at(0), {});
  far_->begin(tag_at(0), {});
  std::thread source_thread([&] { source->asked()(LinkPtr(std::move(near_))); });
  const Status linked = mesh.require(std::vector{1});
  source_thread.join();
  ASSERT_TRUE(linked.ok()) << linked.message();
  EXPECT_TRUE(mesh.has_all_links());
  std::vector<std::byte> received(5);
  far_->receive({received, {}});
  mesh.link(1).send(as_payload("hello"));
  ASSERT_TRUE(mesh.run_until([&] {
                    bool moved = false;
                    EXPECT_TRUE(far_->progress(moved).ok());
                    return far_->received() == 1;
                  })
                  .ok());
  EXPECT_EQ(mesh.link(1).peer(), 1);
}

TEST_P(TransportContract, ALinkThatCannotBeMadeIsALostPeer) {
  const auto source = std::make_shared<KeptBack>();
  Mesh mesh(0, {nullptr, nullptr}, std::make_shared<EventFd>(), source);
  std::thread source_thread([&] { source->asked()(Status(Code::kTimeout, "no route to host")); });
  const Status linked = mesh.require(std::vector{1});
  source_thread.join();
  EXPECT_EQ(linked.code(), Code::kPeerLost);
  EXPECT_EQ(linked.peer(), 1);
  EXPECT_NE(linked.message().find("no route to host"), std::string::npos);
}

TEST_P(TransportContract, AbortEndsTheWaitForALink) {
  const auto source = std::make_shared<KeptBack>();
  Mesh mesh(0, {nullptr, nullptr}, std::make_shared<EventFd>(), source);
  std::thread aborter([&] {
    (void)source->asked();
    mesh.abort();
  });
  EXPECT_EQ(mesh.require(std::vector{1}).code(), Code::kAborted);
  aborter.join();
}

/// The meshes of successive views share one event descriptor.
TEST_P(TransportContract, AWaitAfterAnAbortedOneWithTheSameEventCanBeAbortedAgain) {
  const LinkPtr near = std::move(near_);
  const auto event = std::make_shared<EventFd>();
  Mesh(0, {nullptr, near}, event).abort();
  Mesh mesh(0, {nullptr, near}, event);
  pollfd set{event->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&set, 1, 0), 0) << "a wait would end at once";
  Status status;
  std::thread sleeper([&] { status = mesh.wait(); });
  mesh.abort();
  sleeper.join();
  EXPECT_EQ(status.code(), Code::kAborted);
}

/// The event is set once more when a link is taken before its source has come so far, or by a
/// source of an earlier mesh: one wait ends for nothing, and the next one sleeps.
TEST_P(TransportContract, AnEventThatIsSetForNothingEndsOneWaitOnly) {
  const LinkPtr near = std::move(near_);
  const auto event = std::make_shared<EventFd>();
  Mesh mesh(0, {nullptr, near}, event);
  event->set();
  EXPECT_TRUE(mesh.wait().ok());
  pollfd set{event->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&set, 1, 0), 0) << "the next wait would end at once";
}

TEST_P(TransportContract, AnotherDescriptorEndsAWait) {
  const LinkPtr near = std::move(near_);
  Mesh mesh(0, {nullptr, near});
  EventFd event;
  std::thread sleeper([&] { EXPECT_TRUE(mesh.wait(event.fd()).ok()); });
  event.set();
  sleeper.join();
}

TEST_P(TransportContract, ANoteEndsAWait) {
  const LinkPtr near = std::move(near_);
  const LinkPtr far = std::move(far_);
  Mesh mesh(0, {nullptr, near});
  mesh.begin(tag_at(0), kCall);
  std::thread sleeper([&] {
    while (!near->take_note(1)) {
      bool moved = false;
      ASSERT_TRUE(mesh.progress(moved).ok());
      if (!moved) {
        ASSERT_TRUE(mesh.wait().ok());
      }
    }
  });
  far->begin(tag_at(0), kCall);
  far->send_note(1, pattern(100, 1));
  bool moved = false;
  EXPECT_TRUE(far->progress(moved).ok());
  sleeper.join();
}

/// Notes share the first stream with messages and cannot pass one that waits to be received.
TEST_P(TransportContract, ANoteBehindAMessageOfALaterOperationComesWithIt) {
  begin_both(tag_at(0));
  near_->begin(tag_at(1), kCall);
  const ByteVector message = pattern(100, 1);
  near_->send(message);
  near_->send_note(1, pattern(10, 2));
  pump_until_idle();
  EXPECT_EQ(far_->take_note(1), std::nullopt);
  far_->begin(tag_at(1), kCall);
  ByteVector got(message.size());
  far_->receive({got});
  ASSERT_TRUE(pump([&] { return far_->complete(); }).ok());
  EXPECT_EQ(got, message);
  EXPECT_EQ(note_at_far(1), pattern(10, 2));
}

TEST_P(TransportContract, BothEndsGiveUpInTheMiddleAndGoOn) {
  begin_both(tag_at(0));
  constexpr std::size_t kBytes = 8'000'000;
  ByteVector large = pattern(kBytes, 1);
  ByteVector at_near(kBytes);
  ByteVector at_far(kBytes);
  for (Link* link : {near_.get(), far_.get()}) link->send(large);
  near_->receive({at_near});
  far_->receive({at_far});
  bool moved = false;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(near_->progress(moved).ok());
    ASSERT_TRUE(far_->progress(moved).ok());
  }
  near_->abandon();
  far_->abandon();
  for (ByteVector* memory : {&large, &at_near, &at_far}) ByteVector().swap(*memory);
  begin_both(tag_at(0, 2));
  const ByteVector next = pattern(1'000'000, 2);
  ByteVector next_at_near(next.size());
  ByteVector next_at_far(next.size());
  near_->send(next);
  far_->send(next);
  near_->receive({next_at_near});
  far_->receive({next_at_far});
  const Status status = pump([&] { return near_->complete() && far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(next_at_near == next);
  EXPECT_TRUE(next_at_far == next);
}

/// The place of a message may become known only when another peer's has come.
TEST_P(TransportContract, WhatAPeerThatIsGoneSentWaitsUntilItsPlaceIsKnown) {
  begin_both(tag_at(0));
  far_->send(as_payload("last"));
  pump_until_idle();
  far_.reset();
  const LinkPtr near = std::move(near_);
  for (std::uint64_t round = 0; round < 3; ++round) {
    near->send_note(1, pattern(10, round));  // cannot be delivered any more
    bool moved = false;
    const Status status = near->progress(moved);
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<pollfd> watched;
    if (near->prepare_wait(watched)) ::poll(watched.data(), watched.size(), 20);
    near->finish_wait();
  }
  ByteVector got(4);
  near->receive({got});
  Mesh mesh(0, {nullptr, near});
  const Status status = mesh.run_until([&] { return near->received() == 1; });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::ranges::equal(got, as_payload("last")));
  EXPECT_EQ(mesh.run_until([] { return false; }).code(), Code::kPeerLost);
}

TEST_P(TransportContract, ALinkThatBreaksHangsUpOnThePeer) {
  connect_bare();
  near_->begin(tag_at(0), kCall);
  const ByteVector garbage = pattern(FrameHeader::kBytes, 3);
  const std::array<std::span<const std::byte>, 1> parts = {garbage};
  ASSERT_EQ(bare_.front()->write(parts).value(), garbage.size());
  ASSERT_EQ(failure_of_near().code(), Code::kProtocol);
  const Link far(std::move(bare_), "near end");
  EXPECT_TRUE(sees_the_end(far));  // though the near end still exists
}

TEST(LinkOverARing, ACursorOutOfRangeBreaksTheLink) {
  auto memory = RingMemory::create(kWiringRingBytes);
  ASSERT_TRUE(memory.ok());
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd far(ends[1]);
  std::vector<StreamPtr> streams;
  streams.push_back(std::make_unique<RingStream>(memory.value(), true, UniqueFd(ends[0]), "shm"));
  Link link(std::move(streams), "liar");
  link.begin(tag_at(0), kCall);
  memory.value()->control(1).written.store(~std::uint64_t{0});
  bool moved = false;
  EXPECT_EQ(link.progress(moved).code(), Code::kProtocol);
  EXPECT_TRUE(link.broken());
  EXPECT_EQ(link.progress(moved).code(), Code::kPeerLost);
}

/// Two threads that sleep in poll(2) for each other.
TEST_P(TransportContract, SleepersAreWoken) {
  constexpr int kRounds = 300 / kSlowness;
  const LinkPtr near = std::move(near_);
  const LinkPtr far = std::move(far_);
  const auto play = [](int rank, const LinkPtr& link) {
    std::vector<LinkPtr> links(2);
    links[static_cast<std::size_t>(1 - rank)] = link;
    Mesh mesh(rank, links);
    for (int round = 0; round < kRounds; ++round) {
      mesh.begin(tag_at(static_cast<std::uint64_t>(round)), kCall);
      const std::size_t bytes = round % 10 == 0 ? 700'000 : 100;
      const auto seed = static_cast<std::uint64_t>(round);
      const ByteVector sent = pattern(bytes, seed);
      ByteVector got(bytes);
      link->receive({got});
      if (rank == 0) link->send(sent);
      // The far end answers only when it has everything: the near one has nothing else to do.
      bool answered = rank == 0;
      const Status status = mesh.run_until([&] {
        if (!answered && link->received() == 1) {
          link->send(sent);
          answered = true;
        }
        return answered && link->complete();
      });
      if (!status.ok() || got != sent)
        return status.ok() ? Status(Code::kInternal, "bytes") : status;
    }
    return Status();
  };
  Status of_far;
  std::thread other([&] { of_far = play(1, far); });
  const Status of_near = play(0, near);
  other.join();
  EXPECT_TRUE(of_near.ok()) << of_near.message();
  EXPECT_TRUE(of_far.ok()) << of_far.message();
}

TEST_P(TransportContract, AbortWakesASleeper) {
  const LinkPtr near = std::move(near_);
  Mesh mesh(0, {nullptr, near});
  mesh.begin(tag_at(0), kCall);
  Status status;
  std::thread sleeper([&] { status = mesh.run_until([] { return false; }); });
  mesh.abort();
  sleeper.join();
  EXPECT_EQ(status.code(), Code::kAborted);
}

}  // namespace
}  // namespace elastic::transport
