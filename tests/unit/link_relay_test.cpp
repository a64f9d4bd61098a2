#include "collectives/transport/link_relay.hpp"

#include <array>
#include <functional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// The relay is real, and so are its sockets. The test has both ends and is the only thread.
class LinkRelayTest : public testing::Test {
 protected:
  LinkRelayTest() { asio::local::connect_pair(relays_end_, dialer_); }

  ~LinkRelayTest() override {
    context_->sockets.close();
    io_.restart();
    io_.run();
  }

  Peer target() const {
    return {"target",
            {"far", {"127.0.0.1:" + std::to_string(listener_.local_endpoint().port())}, ""}};
  }
  void serve() {
    LinkGreeting greeting;
    greeting.dialer = "dialer";
    greeting.target = "target";
    relay_->serve(DataSocket(std::move(relays_end_)), greeting);
  }
  void run_until(const std::function<bool()>& done) {
    while (!done()) io_.run_one();
  }
  Verdict verdict() {
    Verdict verdict{};
    bool received = false;
    asio::async_read(dialer_, asio::buffer(&verdict, 1),
                     [&](boost::system::error_code error, std::size_t) {
                       EXPECT_FALSE(error) << error.message();
                       received = true;
                     });
    run_until([&] { return received; });
    return verdict;
  }

  asio::io_context io_;
  std::shared_ptr<LinkerContext> context_ = std::make_shared<LinkerContext>(io_, LinkerOptions{});
  std::shared_ptr<LinkRelay> relay_ = std::make_shared<LinkRelay>(context_);
  asio::local::stream_protocol::socket relays_end_{io_};
  asio::local::stream_protocol::socket dialer_{io_};
  tcp::acceptor listener_{io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
};

TEST_F(LinkRelayTest, RelaysOnlyToMembers) {
  relay_->set_members({{"dialer", {}}});
  serve();
  EXPECT_EQ(verdict(), Verdict::kNoRelay);
}

TEST_F(LinkRelayTest, RelaysOnlyForMembers) {
  relay_->set_members({target()});
  serve();
  EXPECT_EQ(verdict(), Verdict::kNoRelay);
}

TEST_F(LinkRelayTest, SaysThatTheTargetCannotBeReached) {
  const Peer gone = target();
  listener_.close();
  relay_->set_members({{"dialer", {}}, gone});
  serve();
  EXPECT_EQ(verdict(), Verdict::kUnreachable);
}

TEST_F(LinkRelayTest, PassesBytesOnBothWays) {
  relay_->set_members({{"dialer", {}}, target()});
  serve();
  EXPECT_EQ(verdict(), Verdict::kWelcome);
  tcp::socket far = listener_.accept();
  std::array<char, 4> there{};
  std::array<char, 4> back{};
  bool received = false;
  asio::write(dialer_, asio::buffer("ping", 4));
  asio::async_read(far, asio::buffer(there), [&](boost::system::error_code, std::size_t) {
    asio::write(far, asio::buffer("pong", 4));
    asio::async_read(dialer_, asio::buffer(back),
                     [&](boost::system::error_code, std::size_t) { received = true; });
  });
  run_until([&] { return received; });
  EXPECT_EQ(std::string(there.data(), there.size()), "ping");
  EXPECT_EQ(std::string(back.data(), back.size()), "pong");
}

}  // namespace
}  // namespace elastic::transport
