// Links that use fewer streams than they have.
#include <poll.h>
#include <vector>

#include <gtest/gtest.h>

#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

/// Enough for every stream to have some, and to wait for room.
constexpr std::size_t kBytes = 5'000'011;

class TransportFlows : public TransportContract {};

TEST_P(TransportFlows, AnyNumberIsUsedWhateverTheOtherEndUses) {
  EXPECT_EQ(near_->flows(), GetParam().streams);
  EXPECT_EQ(near_->flows_in_use(), GetParam().streams);
  std::uint64_t position = 0;
  for (std::size_t near = 0; near <= GetParam().streams + 1; ++near) {
    near_->use_flows(near);
    EXPECT_GE(near_->flows_in_use(), 1U);
    EXPECT_LE(near_->flows_in_use(), GetParam().streams);
    far_->use_flows(GetParam().streams - std::min(near, GetParam().streams));
    pass_each_other(tag_at(position++), kBytes);
  }
}

TEST_P(TransportFlows, NothingGoesOverTheOthers) {
  connect_bare();
  near_->use_flows(GetParam().streams / 2);
  near_->begin(tag_at(0), kCall);
  const ByteVector large = pattern(kBytes, 1);
  near_->send(large);
  // Sends as much as fits, because the far end does not read.
  for (bool moved = true; moved;) {
    moved = false;
    ASSERT_TRUE(near_->progress(moved).ok());
  }
  const std::size_t used = near_->flows_in_use();
  for (std::size_t i = 0; i < GetParam().streams; ++i) {
    pollfd end{bare_[i]->fd(), POLLIN, 0};
    const bool arrived = ::poll(&end, 1, i < used ? 10'000 : 0) > 0;
    EXPECT_EQ(arrived, i < used) << "stream " << i;
  }
}

/// They go over all streams even if each has room for all: networks cap streams, not messages.
TEST_P(TransportFlows, MessagesThatComeOneAtATimeGoOverAll) {
  connect_bare();
  near_->begin(tag_at(0), kCall);
  const ByteVector small = pattern(1000, 1);
  for (std::size_t i = 0; i < GetParam().streams; ++i) {
    near_->send(small);
    const Status status = pump([&] { return near_->sent() > i; });
    ASSERT_TRUE(status.ok()) << status.message();
  }
  for (std::size_t i = 0; i < GetParam().streams; ++i) {
    pollfd end{bare_[i]->fd(), POLLIN, 0};
    EXPECT_GT(::poll(&end, 1, 10'000), 0) << "stream " << i;
  }
}

TEST_P(TransportFlows, AFrameUnderWayIsCompletedWhenItsStreamIsGivenUp) {
  begin_both(tag_at(0));
  const ByteVector large = pattern(16 * kBytes, 1);
  near_->send(large);
  bool moved = false;
  ASSERT_TRUE(near_->progress(moved).ok());  // the streams are full
  near_->use_flows(1);
  ByteVector got(large.size());
  far_->receive({got});
  const Status status = pump([&] { return near_->complete() && far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(got == large);
}

TEST_P(TransportFlows, WithNothingToSendOverTheOthersItSleeps) {
  near_->use_flows(1);
  begin_both(tag_at(0));
  const ByteVector large = pattern(16 * kBytes, 1);
  near_->send(large);
  for (bool moved = true; moved;) {
    moved = false;
    ASSERT_TRUE(near_->progress(moved).ok());
  }
  ASSERT_LT(near_->sent(), 1U) << "the message was meant to be too large";
  std::vector<pollfd> watched;
  EXPECT_TRUE(near_->prepare_wait(watched));
  near_->finish_wait();
}

TEST_P(TransportFlows, ThePeersDeathIsNoticedOnOneThatIsNotUsed) {
  connect_bare();
  near_->use_flows(1);
  near_->begin(tag_at(0), kCall);
  ByteVector into(1);
  near_->receive({into});
  bare_.back().reset();
  EXPECT_EQ(failure_of_near().code(), Code::kPeerLost);
  EXPECT_TRUE(near_->broken());
}

std::vector<StreamWiring> with_several_streams() {
  std::vector<StreamWiring> several;
  for (const StreamWiring& wiring : stream_wirings()) {
    if (wiring.streams > 2) several.push_back(wiring);
  }
  return several;
}

INSTANTIATE_TEST_SUITE_P(Every, TransportFlows, testing::ValuesIn(with_several_streams()),
                         wiring_name);

}  // namespace
}  // namespace elastic::transport
