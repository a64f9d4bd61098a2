// A way to the peer that is broken, and a peer that is merely slow: the one must not be taken for
// the other.
#include "collectives/transport/tcp/silence_watch.hpp"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/transport/mesh.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"
#include "stream_wirings.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

constexpr Milliseconds kLimit{1000};

class SilenceDecision : public testing::Test {
 protected:
  /// Looks `milliseconds` after the last time. The peer has `answered` since or not.
  bool after(int milliseconds, bool outstanding, bool answered, std::uint64_t tried) {
    now_ += Milliseconds(milliseconds);
    if (answered) ++answers_;
    return watch_.alive({outstanding, answers_, tried}, now_);
  }

  SilenceWatch watch_{kLimit};
  TimePoint now_{std::chrono::hours(100)};
  std::uint64_t answers_ = 0;
};

TEST_F(SilenceDecision, BreaksWhenNothingAnswersWhatWasSent) {
  EXPECT_TRUE(after(100, true, true, 10));
  EXPECT_TRUE(after(100, true, false, 10));  // perhaps sent before the answer
  EXPECT_TRUE(after(100, true, false, 11));
  EXPECT_TRUE(after(800, true, false, 12));
  EXPECT_FALSE(after(100, true, false, 12));
}

TEST_F(SilenceDecision, CountsFromTheLastAnswer) {
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(after(900, true, true, 10 + 2 * i));
  EXPECT_TRUE(after(900, true, false, 49));
  EXPECT_FALSE(after(1000, true, false, 49));
}

TEST_F(SilenceDecision, AClosedWindowIsNoSilence) {
  // Each question is answered; the pauses between them grow.
  for (std::uint64_t i = 1; i < 8; ++i) {
    EXPECT_TRUE(after(500 << i, true, true, 10 + i));
    EXPECT_TRUE(after(500 << i, true, false, 10 + i));
  }
  EXPECT_TRUE(after(500, true, false, 18));
  EXPECT_FALSE(after(1000, true, false, 18));  // the last question was not
}

TEST_F(SilenceDecision, NothingOutstandingIsNoSilence) {
  EXPECT_TRUE(after(100, true, true, 10));
  EXPECT_TRUE(after(100, false, true, 12));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(after(5000, false, false, 12));
  EXPECT_TRUE(after(10, true, false, 13));  // the rest before it does not count
  EXPECT_TRUE(after(900, true, false, 13));
  EXPECT_FALSE(after(100, true, false, 13));
}

/// A rank may compute for long while others have already sent it more than the buffers take.
TEST(SlowPeer, ThatDoesNotReadIsNotLost) {
  constexpr std::size_t kBytes = 64 << 20;
  constexpr Milliseconds kComputes = 4 * kDefaultLinkTimeout;
  StreamPair pair = tcp4_pair();
  std::vector<StreamPtr> of_near;
  of_near.push_back(std::move(pair.first));
  std::vector<StreamPtr> of_far;
  of_far.push_back(std::move(pair.second));
  const auto near = std::make_shared<Link>(std::move(of_near), "slow peer");
  const auto far = std::make_shared<Link>(std::move(of_far), "sender");
  Mesh sender(0, {nullptr, near});
  Mesh slow(1, {far, nullptr});
  sender.begin(tag_at(0), kCall);
  slow.begin(tag_at(0), kCall);
  const ByteVector sent(kBytes, std::byte{7});
  ByteVector got(kBytes);
  near->send(sent);
  Status of_sender;
  std::thread thread([&] { of_sender = sender.run_until([&] { return near->complete(); }); });
  // The time for which it does not read is what is tested.
  std::this_thread::sleep_for(kComputes);
  far->receive({got});
  const Status of_slow = slow.run_until([&] { return far->complete(); });
  thread.join();
  EXPECT_TRUE(of_sender.ok()) << of_sender.message();
  EXPECT_TRUE(of_slow.ok()) << of_slow.message();
  EXPECT_TRUE(got == sent);
}

}  // namespace
}  // namespace elastic::transport
