// Programs that connect to a Linker and do not belong to the job.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/host_identity.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Talks to a worker's listeners as a program that does not belong to the job.
class LinkerStrangers : public LinkerTest {
 protected:
  asio::generic::stream_protocol::socket tcp_to(const LinkingWorker& worker) {
    const std::string& text = worker.endpoints().tcp.front();
    const auto colon = text.rfind(':');
    tcp::socket socket(io_);
    socket.connect({asio::ip::make_address(text.substr(0, colon)),
                    static_cast<unsigned short>(std::stoi(text.substr(colon + 1)))});
    return asio::generic::stream_protocol::socket(std::move(socket));
  }
  asio::generic::stream_protocol::socket local_to(const LinkingWorker& worker) {
    asio::local::stream_protocol::socket socket(io_);
    socket.connect(std::string(1, '\0') + worker.endpoints().local);
    return asio::generic::stream_protocol::socket(std::move(socket));
  }
  /// Reads until the worker hangs up; returns how many bytes it said before.
  static std::size_t until_closed(asio::generic::stream_protocol::socket& socket) {
    std::array<char, 256> bytes;
    std::size_t total = 0;
    boost::system::error_code error;
    while (!error) total += socket.read_some(asio::buffer(bytes), error);
    return total;
  }

  /// Raises the limit of descriptors, for tests with many connections.
  static void allow_descriptors(std::size_t count) {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, count + 1000);
    ASSERT_GE(limit.rlim_cur, count) << "raise the hard limit of descriptors (ulimit -Hn)";
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  using Challenge = std::array<std::byte, handshake::kChallengeBytes>;
  static Challenge read_challenge(asio::generic::stream_protocol::socket& socket) {
    Challenge challenge;
    asio::read(socket, asio::buffer(challenge));
    return challenge;
  }
  LinkGreeting greeting(const std::string& from, const std::string& to) const {
    LinkGreeting made;
    made.job = "job";
    made.dialer = from + suffix_;
    made.acceptor = to + suffix_;
    made.transport = "tcp";
    made.link_id = "of a stranger";
    made.generation = 5;
    return made;
  }
  /// A handshake with the right secret, and all bytes that were written for it.
  Verdict shake_hands(const LinkingWorker& worker, const LinkGreeting& as,
                      std::vector<std::byte>* recorded = nullptr) {
    auto socket = tcp_to(worker);
    const handshake::Dialer dialer(secret_, handshake::Purpose::kData, encode(as));
    auto bytes = dialer.hello();
    asio::write(socket, asio::buffer(bytes));
    const auto proof = dialer.answer(read_challenge(socket)).value();
    asio::write(socket, asio::buffer(proof));
    Verdict verdict{};
    asio::read(socket, asio::buffer(&verdict, 1));
    bytes.insert(bytes.end(), proof.begin(), proof.end());
    if (recorded != nullptr) *recorded = bytes;
    return verdict;
  }

  asio::io_context io_;
};

/// Two linked workers in generation 5, whose link has to outlive whatever strangers try.
class LinkerFence : public LinkerStrangers {
 protected:
  void SetUp() override {
    auto at_a = a_.connect({peer("b", b_)}, kLinkDeadline, 5);
    auto at_b = b_.connect({peer("a", a_)}, kLinkDeadline, 5);
    links_ = expect_pair(std::move(at_a), std::move(at_b));
  }
  void TearDown() override {
    ASSERT_EQ(links_.first.size(), 2U);
    expect_linked(links_.first[0], links_.second[0], 9);
    expect_linked(links_.second[1], links_.first[1], 9);
  }

  LinkingWorker a_{options("a")};
  LinkingWorker b_{options("b")};
  std::pair<Linker::LinksOfPeer, Linker::LinksOfPeer> links_;
};

TEST_F(LinkerFence, AnOldGenerationIsRefusedAndToldWhy) {
  LinkGreeting old = greeting("b", "a");
  old.generation = 4;
  EXPECT_EQ(shake_hands(a_, old), Verdict::kOldGeneration);
}

TEST_F(LinkerFence, ARecordedHandshakeIsWorthNothingAgain) {
  std::vector<std::byte> recorded;
  EXPECT_EQ(shake_hands(a_, greeting("somebody else", "a"), &recorded), Verdict::kWelcome);
  auto socket = tcp_to(a_);
  asio::write(socket, asio::buffer(recorded));
  EXPECT_EQ(until_closed(socket), handshake::kChallengeBytes);  // no verdict
}

TEST_F(LinkerFence, AChallengeThatIsReflectedIsNoProof) {
  constexpr std::size_t kNonceAt = 8;
  constexpr std::size_t kNonceBytes = 32;
  auto hello =
      handshake::Dialer(Secret{}, handshake::Purpose::kData, encode(greeting("b", "a"))).hello();
  auto victim = tcp_to(a_);
  asio::write(victim, asio::buffer(hello));
  const Challenge asked = read_challenge(victim);
  // A second connection would answer the challenge of the first one if roles were not checked.
  std::copy_n(asked.begin() + kNonceAt, kNonceBytes, hello.begin() + kNonceAt);
  auto oracle = tcp_to(a_);
  asio::write(oracle, asio::buffer(hello));
  const Challenge answered = read_challenge(oracle);
  asio::write(victim,
              asio::buffer(answered.data() + kNonceAt + kNonceBytes, handshake::kProofBytes));
  EXPECT_EQ(until_closed(victim), 0U);
}

TEST_F(LinkerFence, AWrongSecretGetsNowhere) {
  LinkerOptions other = options("c");
  other.secret = random_secret();
  LinkingWorker c(other);
  EXPECT_FALSE(c.connect({peer("a", a_)}, kRefusalDeadline, 5).get().ok());
}

TEST_F(LinkerFence, NoWorkerIsRelayedOutOfTheView) {
  LinkGreeting to_outsider = greeting("b", "a");
  to_outsider.target = "c" + suffix_;
  EXPECT_EQ(shake_hands(a_, to_outsider), Verdict::kNoRelay);
  LinkGreeting from_outsider = greeting("c", "a");
  from_outsider.target = "b" + suffix_;
  EXPECT_EQ(shake_hands(a_, from_outsider), Verdict::kNoRelay);
}

TEST_F(LinkerStrangers, DoNoHarm) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  constexpr std::uint64_t kSeed = 4;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 50; ++round) {
    for (const bool local : {false, true}) {
      auto socket = local ? local_to(a) : tcp_to(a);
      std::string text = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody at all\r\n\r\n";
      if (round > 0) {
        text.resize(64 + random() % 2000);
        for (char& character : text) character = static_cast<char>(random() & 0xffU);
      }
      boost::system::error_code ignored;
      asio::write(socket, asio::buffer(text), ignored);
      ASSERT_EQ(until_closed(socket), 0U) << "seed " << kSeed << " round " << round;
    }
  }
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  expect_pair(std::move(at_a), std::move(at_b));
}

TEST_F(LinkerStrangers, WhoSaysNothingIsDroppedAfterTheDeadline) {
  LinkerOptions hasty = options("a");
  hasty.handshake_deadline = kRefusalDeadline;  // within which the slow one says hello
  const LinkingWorker a(hasty);
  auto silent = tcp_to(a);
  EXPECT_EQ(until_closed(silent), 0U);
  auto slow = local_to(a);
  const auto hello = handshake::Dialer(secret_, handshake::Purpose::kData, "x").hello();
  asio::write(slow, asio::buffer(hello));
  EXPECT_EQ(until_closed(slow), handshake::kChallengeBytes);
}

/// The silent ones would be dropped only long after the deadline for linking.
TEST_F(LinkerStrangers, TwoThousandSilentConnectionsKeepNoWorkerOut) {
  constexpr std::size_t kSilent = 2000;
  allow_descriptors(2 * kSilent);
  for (const Transport transport : {Transport::kTcp, Transport::kShm}) {
    LinkerOptions patient = options("a");
    patient.handshake_deadline = 10 * kLinkDeadline;
    patient.transport = transport;
    LinkingWorker a(patient);
    patient.incarnation = "b" + suffix_;
    LinkingWorker b(patient);
    std::vector<asio::generic::stream_protocol::socket> silent;
    for (std::size_t i = 0; i < kSilent; ++i) {
      silent.push_back(transport == Transport::kTcp ? tcp_to(a) : local_to(a));
    }
    auto at_a = a.connect({peer("b", b)});
    auto at_b = b.connect({peer("a", a)});
    expect_pair(std::move(at_a), std::move(at_b));
  }
}

TEST_F(LinkerStrangers, OtherUsersOfTheMachineGetNoAnswer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const LinkingWorker a(options("a"));
  const std::string name = std::string(1, '\0') + a.endpoints().local;
  const auto hello = handshake::Dialer(secret_, handshake::Purpose::kData, "x").hello();
  constexpr uid_t kUnprivilegedUser = 65534;
  const pid_t other = ::fork();
  if (other == 0) {
    // The child uses system calls only, because the library's threads do not exist in it.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char answer = 0;
    const bool asked = ::setuid(kUnprivilegedUser) == 0 &&
                       ::connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0;
    if (asked) (void)!::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    ::_exit(!asked ? 2 : ::recv(fd, &answer, 1, 0) > 0 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: could not connect, 1: was answered";
}

TEST_F(LinkerStrangers, AProofThatIsWrongGetsNoVerdict) {
  const LinkingWorker a(options("a"));
  auto socket = tcp_to(a);
  const auto hello = handshake::Dialer(secret_, handshake::Purpose::kData, "x").hello();
  asio::write(socket, asio::buffer(hello));
  std::array<std::byte, handshake::kChallengeBytes> challenge;
  asio::read(socket, asio::buffer(challenge));
  const std::array<std::byte, handshake::kProofBytes> guess{};
  asio::write(socket, asio::buffer(guess));
  EXPECT_EQ(until_closed(socket), 0U);
}

TEST(HostIdentity, IsTheSameEveryTimeAndNotEmpty) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_GT(host_identity().size(), 10U);
}

}  // namespace
}  // namespace elastic::transport
