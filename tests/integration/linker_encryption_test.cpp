// Linkers of jobs that encrypt.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/mesh.hpp"
#include "eavesdropper.hpp"
#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

namespace asio = boost::asio;

class EncryptedLinks : public LinkerTest {
 protected:
  LinkerOptions over_tcp(const std::string& name, bool encrypt = true) const {
    LinkerOptions made = options(name);
    made.transport = Transport::kTcp;
    made.encrypt = encrypt;
    return made;
  }
  /// Two workers with these options, in both lanes.
  void expect_linked_over(const char* transport, LinkerOptions made) {
    LinkingWorker a(made);
    made.incarnation = "b" + suffix_;
    LinkingWorker b(made);
    auto at_a = a.connect({peer("b", b)});
    auto at_b = b.connect({peer("a", a)});
    const auto links = expect_pair(std::move(at_a), std::move(at_b));
    ASSERT_EQ(links.first.size(), 2U);
    EXPECT_STREQ(links.first[0]->transport(), transport);
  }
  static std::uint16_t port_of(const LinkingWorker& worker) {
    const std::string& address = worker.endpoints().tcp.front();
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
};

TEST_F(EncryptedLinks, AreMadeInEveryLaneAndStream) {
  for (const int streams : {1, 4}) {
    LinkerOptions made = over_tcp("a");
    made.streams = streams;
    expect_linked_over("tcp", made);
  }
}

TEST_F(EncryptedLinks, SharedMemoryStaysAsItIs) {
  LinkerOptions made = options("a");
  made.encrypt = true;
  expect_linked_over("shm", made);
}

/// Sends `text` from one end to the other.
void tell(const LinkPtr& from, const LinkPtr& to, const std::string& text) {
  constexpr Fingerprint kCall{1, 2, 0, 1, 0, 16};
  for (const LinkPtr& link : {from, to}) link->begin({1, 9, OpTag::kNormal}, kCall);
  std::string got(text.size(), ' ');
  to->receive({std::as_writable_bytes(std::span(got))});
  from->send(std::as_bytes(std::span(text)));
  Mesh mesh(0, {nullptr, to});
  const Status status = mesh.run_until([&] { return to->complete(); });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got, text);
}

TEST_F(EncryptedLinks, TellNothingToWhoListens) {
  const std::string secret = "a gradient that is nobody's business";
  for (const bool encrypt : {false, true}) {
    LinkingWorker a(over_tcp("a", encrypt));
    LinkingWorker b(over_tcp("b", encrypt));
    const Eavesdropper between(port_of(a));
    Peer behind = peer("a", a);
    behind.endpoints.tcp = {between.address()};
    auto at_b = b.connect({behind});
    auto at_a = a.connect({peer("b", b)});
    const auto links = expect_pair(std::move(at_a), std::move(at_b));
    ASSERT_EQ(links.first.size(), 2U);
    tell(links.first[0], links.second[0], secret);
    tell(links.second[1], links.first[1], secret);
    EXPECT_GT(between.bytes(), 4 * secret.size());
    EXPECT_EQ(between.heard(secret), !encrypt);
  }
}

/// The data that a relay passes on is encrypted from end to end.
TEST_F(EncryptedLinks, AreRelayedByAThirdMember) {
  LinkingWorker a(over_tcp("a"));
  LinkingWorker b(over_tcp("b"));
  LinkingWorker c(over_tcp("c"));
  const Eavesdropper before_relay(port_of(c));
  Peer refusing = peer("a", a);
  refusing.endpoints.tcp = {"127.0.0.1:1"};
  Peer relay = peer("c", c);
  relay.endpoints.tcp = {before_relay.address()};
  auto at_a = a.connect({peer("b", b), peer("c", c)});
  auto at_b = b.connect({refusing, relay});
  auto at_c = c.connect({peer("a", a), peer("b", b)});
  ASSERT_TRUE(at_c.get().ok());
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(links.first.size(), 2U);
  const std::string secret = "not for the relay either";
  tell(links.first[0], links.second[0], secret);
  tell(links.second[0], links.first[0], secret);
  EXPECT_GT(before_relay.bytes(), secret.size());
  EXPECT_FALSE(before_relay.heard(secret));
}

TEST_F(EncryptedLinks, AProbeMeasuresTheLine) {
  LinkingWorker joiner(over_tcp("a"));
  LinkingWorker donor(over_tcp("b"));
  const Eavesdropper between(port_of(donor));
  Peer behind = peer("b", donor);
  behind.endpoints.tcp = {between.address()};
  const Result<double> rate = joiner.probe(behind).get();
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(rate.value(), 1e5);
  EXPECT_FALSE(between.heard(std::string(64, '\0')));  // a probe is nothing but zeros
}

TEST_F(EncryptedLinks, AWorkerThatDoesNotEncryptIsRefusedAndToldWhy) {
  for (const bool dialer_encrypts : {false, true}) {
    LinkingWorker a(over_tcp("a", !dialer_encrypts));
    LinkingWorker b(over_tcp("b", dialer_encrypts));
    auto at_b = b.connect({peer("a", a)}, kRefusalDeadline);
    auto at_a = a.connect({peer("b", b)}, kRefusalDeadline);
    const Status refused = at_b.get().status();
    EXPECT_EQ(refused.code(), Code::kTimeout);
    const std::string which = dialer_encrypts ? "this side encrypts" : "the other side encrypts";
    EXPECT_NE(refused.message().find(which), std::string::npos) << refused.message();
    EXPECT_NE(refused.message().find("ELASTIC_ENCRYPT"), std::string::npos) << refused.message();
    EXPECT_FALSE(at_a.get().ok());
  }
}

TEST_F(EncryptedLinks, AWrongSecretIsRefusedAndSaysSo) {
  LinkingWorker a(over_tcp("a"));
  LinkerOptions other = over_tcp("b");
  other.secret = random_secret();
  LinkingWorker b(other);
  const Status refused = b.connect({peer("a", a)}, kRefusalDeadline).get().status();
  EXPECT_NE(refused.message().find("secret"), std::string::npos) << refused.message();
}

TEST_F(EncryptedLinks, AnOldGenerationIsRefused) {
  LinkingWorker a(over_tcp("a"));
  LinkingWorker b(over_tcp("b"));
  auto at_a = a.connect({peer("b", b)}, kLinkDeadline, 3);
  const Status refused = b.connect({peer("a", a)}, kRefusalDeadline, 2).get().status();
  EXPECT_NE(refused.message().find("later view"), std::string::npos) << refused.message();
  auto at_b = b.connect({peer("a", a)}, kLinkDeadline, 3);
  expect_pair(std::move(at_a), std::move(at_b));
}

/// A dialer with the secret stops where TLS should begin, or sends something else.
TEST_F(EncryptedLinks, WhoDoesNotGoOnUnderTlsIsDropped) {
  LinkerOptions hasty = over_tcp("a");
  hasty.handshake_deadline = kRefusalDeadline;  // within which all but TLS is said
  LinkingWorker a(hasty);
  asio::io_context io;
  for (const std::string& text : {std::string(), std::string(100, 'x')}) {
    asio::ip::tcp::socket socket(io);
    socket.connect({asio::ip::address_v4::loopback(), port_of(a)});
    LinkGreeting greeting;
    greeting.job = "job";
    greeting.dialer = "b" + suffix_;
    greeting.acceptor = "a" + suffix_;
    greeting.transport = "tcp";
    greeting.link_id = "x";
    const handshake::Dialer dialer(secret_, handshake::Purpose::kData, encode(greeting), true);
    asio::write(socket, asio::buffer(dialer.hello()));
    std::array<std::byte, handshake::kChallengeBytes> challenge;
    asio::read(socket, asio::buffer(challenge));
    asio::write(socket, asio::buffer(dialer.answer(challenge).value()));
    Verdict verdict{};
    asio::read(socket, asio::buffer(&verdict, 1));
    ASSERT_EQ(verdict, Verdict::kWelcome);
    asio::write(socket, asio::buffer(text));
    std::array<char, 256> rest;
    boost::system::error_code error;
    while (!error) socket.read_some(asio::buffer(rest), error);
    EXPECT_NE(error, asio::error::would_block);
  }
  LinkingWorker b(over_tcp("b"));
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  expect_pair(std::move(at_a), std::move(at_b));
}

}  // namespace
}  // namespace elastic::transport
