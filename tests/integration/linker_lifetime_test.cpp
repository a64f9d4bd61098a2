// The ends of a Linker: closed or destroyed while handshakes, dials and peers are under way.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Longer than any test here: nothing may wait for it.
constexpr Milliseconds kEndless{60000};

/// A Linker whose io_context the test runs itself, with a listener that accepts in the kernel and
/// never says a word, and strangers that never say a word either.
class LinkerLifetime : public LinkerTest {
 protected:
  void SetUp() override {
    LinkerOptions made = options("b");
    made.transport = Transport::kTcp;
    made.handshake_deadline = kEndless;
    linker_ = std::make_unique<Linker>(*io_, made);
    ASSERT_TRUE(linker_->listen().ok());
  }

  /// A peer that is dialed and does not answer.
  Peer mute_peer() const {
    Peer peer;
    peer.incarnation = "a" + suffix_;
    peer.endpoints.host = "elsewhere";
    peer.endpoints.tcp = {"127.0.0.1:" + std::to_string(mute_.local_endpoint().port())};
    return peer;
  }
  void knock() {
    const std::string& text = linker_->endpoints().tcp.front();
    const auto port = static_cast<unsigned short>(std::stoi(text.substr(text.rfind(':') + 1)));
    strangers_.emplace_back(outside_).connect({asio::ip::address_v4::loopback(), port});
    asio::local::stream_protocol::socket local(outside_);
    local.connect(std::string(1, '\0') + linker_->endpoints().local);
    local_strangers_.push_back(std::move(local));
  }
  /// Dials and handshakes in all lanes, and strangers of both kinds, all in the middle of it.
  void get_busy() {
    knock();
    linker_->connect({mute_peer()}, 1, kEndless, [this](const Links&) { ++called_; });
    // The dials are under way as soon as the mute listener has both lanes in its queue.
    std::vector<tcp::socket> dialed;
    mute_.non_blocking(true);
    const TimePoint deadline = Clock::now() + std::chrono::seconds(20);
    while (dialed.size() < 2 && Clock::now() < deadline) {
      io_->poll();
      boost::system::error_code error;
      tcp::socket socket = mute_.accept(error);
      if (!error) dialed.push_back(std::move(socket));
    }
    ASSERT_EQ(dialed.size(), 2U);
    for (tcp::socket& socket : dialed) strangers_.push_back(std::move(socket));
    io_->poll();
  }

  asio::io_context outside_;
  tcp::acceptor mute_{outside_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::vector<tcp::socket> strangers_;
  std::vector<asio::local::stream_protocol::socket> local_strangers_;
  int called_ = 0;
  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
  std::unique_ptr<Linker> linker_;
};

TEST_F(LinkerLifetime, ClosingEndsEverythingThatIsUnderWay) {
  get_busy();
  linker_->close();
  const TimePoint closed = Clock::now();
  io_->run();  // comes back when nothing is left to do
  EXPECT_LT(Clock::now() - closed, kEndless / 2) << "it waited for a deadline";
  EXPECT_EQ(called_, 0);
}

TEST_F(LinkerLifetime, ClosingTwiceAndCancellingAfterwardsIsFine) {
  get_busy();
  linker_->close();
  linker_->cancel();
  linker_->close();
  io_->run();
  EXPECT_EQ(called_, 0);
}

TEST_F(LinkerLifetime, TheContextMayStopFirst) {
  get_busy();
  io_->stop();
  linker_.reset();
  io_.reset();
  EXPECT_EQ(called_, 0);
}

TEST_F(LinkerLifetime, TheLinkerMayGoWhileTheContextRunsOn) {
  get_busy();
  linker_.reset();
  io_->run();
  EXPECT_EQ(called_, 0);
}

TEST_F(LinkerLifetime, TheContextMayGoWithoutHavingRun) {
  knock();
  linker_->connect({mute_peer()}, 1, kEndless, [this](const Links&) { ++called_; });
  linker_.reset();
  io_.reset();
  EXPECT_EQ(called_, 0);
}

TEST_F(LinkerLifetime, CancellingLetsTheDialsEnd) {
  get_busy();
  linker_->cancel();
  strangers_.clear();
  local_strangers_.clear();
  mute_.close();
  bool again = false;
  linker_->connect({}, 1, kEndless, [&](const Links& links) { again = links.ok(); });
  EXPECT_TRUE(again);
  linker_->close();
  io_->run();
  EXPECT_EQ(called_, 0);
}

TEST_F(LinkerLifetime, AListenerThatAnswersHttpIsNamedInTheFailure) {
  linker_->connect({mute_peer()}, 1, kRefusalDeadline, [this](const Links& links) {
    ++called_;
    EXPECT_EQ(links.status().code(), Code::kTimeout);
    EXPECT_EQ(links.status().peer(), 0);
    EXPECT_NE(links.status().message().find("does not speak elastic's protocol"), std::string::npos)
        << links.status().message();
  });
  const std::string page(200, 'H');
  std::function<void()> serve = [&] {
    mute_.async_accept([&](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      asio::write(socket, asio::buffer(page), error);
      strangers_.push_back(std::move(socket));
      serve();
    });
  };
  serve();
  std::thread server([&] { outside_.run(); });
  while (called_ == 0) io_->run_one();
  outside_.stop();
  server.join();
}

TEST_F(LinkerTest, AWorkerThatComesBackUnderItsNameIsLinkedAnew) {
  LinkingWorker a(options("a"));
  auto b = std::make_unique<LinkingWorker>(options("b"));
  auto at_a = a.connect({peer("b", *b)});
  auto at_b = b->connect({peer("a", a)});
  auto first = expect_pair(std::move(at_a), std::move(at_b));
  first.second.clear();  // as if b's process had ended
  b.reset();
  b = std::make_unique<LinkingWorker>(options("b"));
  at_b = b->connect({peer("a", a)});
  at_a = a.connect({peer("b", *b)});
  const auto second = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_FALSE(second.first.empty());
  EXPECT_NE(second.first, first.first);
}

TEST_F(LinkerTest, WhyEachPeerIsMissingIsNotMixedUp) {
  LinkingWorker b(options("b"));
  Peer silent;
  silent.incarnation = "z-silent" + suffix_;  // should dial, and does not
  Peer dead;
  dead.incarnation = "a-dead" + suffix_;
  dead.endpoints.host = "elsewhere";
  dead.endpoints.tcp = {"127.0.0.1:1"};
  const Status status = b.connect({silent, dead}, kRefusalDeadline).get().status();
  EXPECT_EQ(status.peer(), 0);
  EXPECT_EQ(status.message().find("127.0.0.1:1"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace elastic::transport
