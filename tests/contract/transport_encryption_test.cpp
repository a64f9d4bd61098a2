// Links through a proxy that listens or tampers.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/clock.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"
#include "collectives/transport/tcp/tls_stream.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

using Meddle = std::function<void(std::size_t first, ByteVector& bytes)>;

/// Two ends whose bytes all pass through here.
class TappedLink : public testing::Test {
 protected:
  void connect(bool encrypt) {
    SocketPair near = tcp4_sockets();
    SocketPair far = tcp4_sockets();
    at_near_ = std::make_unique<TcpStream>(std::move(near.second));
    at_far_ = std::make_unique<TcpStream>(std::move(far.first));
    StreamPair ends;
    if (encrypt) {
      ends = tls_over(std::move(near.first), std::move(far.second), [this] {
        carry(*at_near_, *at_far_);
        carry(*at_far_, *at_near_);
      });
    } else {
      ends = {std::make_unique<TcpStream>(std::move(near.first)),
              std::make_unique<TcpStream>(std::move(far.second))};
    }
    near_ = link_over(std::move(ends.first), "near");
    far_ = link_over(std::move(ends.second), "far");
    near_->begin(tag_at(7), kCall);
    far_->begin(tag_at(7), kCall);
    heard_.clear();
  }
  static std::unique_ptr<Link> link_over(StreamPtr stream, const std::string& peer) {
    std::vector<StreamPtr> streams;
    streams.push_back(std::move(stream));
    return std::make_unique<Link>(std::move(streams), peer);
  }

  ByteVector carry(Stream& from, Stream& to) {
    ByteVector bytes(1 << 16);
    bytes.resize(from.read(bytes).value());
    if (meddle_) meddle_(heard_.size(), bytes);
    heard_.insert(heard_.end(), bytes.begin(), bytes.end());
    const std::array<std::span<const std::byte>, 1> parts = {bytes};
    EXPECT_EQ(to.write(parts).value(), bytes.size());
    return bytes;
  }

  /// Passes on what the near end sends until the far end has all of it, or fails.
  Status deliver() {
    const TimePoint deadline = Clock::now() + std::chrono::seconds(20);
    while (!near_->complete() || !far_->complete()) {
      bool moved = false;
      if (Status status = near_->progress(moved); !status.ok()) return status;
      carry(*at_near_, *at_far_);
      if (Status status = far_->progress(moved); !status.ok()) return status;
      if (Clock::now() > deadline) return Status(Code::kTimeout, "nothing came of it");
    }
    return {};
  }
  bool heard(std::span<const std::byte> what) const {
    return std::search(heard_.begin(), heard_.end(), what.begin(), what.end()) != heard_.end();
  }

  Meddle meddle_;
  ByteVector heard_;  // after `connect`
  std::unique_ptr<TcpStream> at_near_;
  std::unique_ptr<TcpStream> at_far_;
  std::unique_ptr<Link> near_;
  std::unique_ptr<Link> far_;
};

TEST_F(TappedLink, NothingIsInTheClearWhereItIsEncrypted) {
  const ByteVector sent = pattern(100'000, 1);
  for (const bool encrypt : {false, true}) {
    connect(encrypt);
    ByteVector got(sent.size());
    far_->receive({got});
    near_->send(sent);
    near_->send_note(1, pattern(1000, 2));
    const Status status = deliver();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(got == sent);
    // An eavesdropper recognizes every part of the message without encryption, and none with it.
    for (std::size_t at = 0; at + 16 <= sent.size(); at += 4000) {
      EXPECT_EQ(heard(std::span(sent).subspan(at, 16)), !encrypt) << "byte " << at;
    }
    EXPECT_EQ(heard(std::as_bytes(std::span("EFL2")).first(4)), !encrypt);  // a frame's first bytes
  }
}

TEST_F(TappedLink, AFlippedBitBreaksAnEncryptedLinkAndNothingCounts) {
  constexpr std::size_t kBytes = 10'000;
  constexpr std::size_t kRecordHeader = 5;
  constexpr std::size_t kLengthAt = 3;
  const ByteVector sent = pattern(kBytes, 1);
  for (const std::size_t byte :
       {std::size_t{0}, std::size_t{1}, kLengthAt, kLengthAt + 1, kRecordHeader,
        kRecordHeader + kBytes / 2, kRecordHeader + kBytes}) {
    meddle_ = nullptr;
    connect(true);
    meddle_ = [byte](std::size_t first, ByteVector& bytes) {
      if (byte >= first && byte < first + bytes.size()) bytes[byte - first] ^= std::byte{8};
    };
    ByteVector got(kBytes);
    far_->receive({got});
    near_->send(sent);
    const Status status = deliver();
    EXPECT_EQ(status.code(), Code::kProtocol);
    EXPECT_NE(status.message().find("damaged or forged"), std::string::npos) << status.message();
    EXPECT_EQ(far_->received(), 0U);
    EXPECT_TRUE(far_->broken());
    EXPECT_TRUE(std::ranges::all_of(got, [](std::byte one) { return one == std::byte{}; }));
  }
}

TEST_F(TappedLink, WhatIsSentAgainByAnotherBreaksAnEncryptedLink) {
  connect(true);
  ByteVector got(100);
  far_->receive({got});
  near_->send(got);
  ASSERT_TRUE(deliver().ok());
  const ByteVector recorded = heard_;
  const std::array<std::span<const std::byte>, 1> again = {recorded};
  ASSERT_EQ(at_far_->write(again).value(), recorded.size());
  far_->receive({got});
  EXPECT_EQ(deliver().code(), Code::kProtocol);
}

/// Waits until all data sent from this end of a connection has arrived at the other.
void await_arrival(int socket) {
  for (int left = 1; left > 0; std::this_thread::yield()) {
    ASSERT_EQ(::ioctl(socket, SIOCOUTQ, &left), 0);
  }
}

/// Nothing more arrives at the socket, so no event of the socket would end the wait.
TEST(LinkOverTls, WhatCameWithTheHandshakeEndsAWait) {
  SocketPair sockets = tcp4_sockets();
  const int dialer = sockets.first.get();
  const int acceptor = sockets.second.get();
  const SessionKey key = random_session_key();
  auto one = std::make_unique<TlsSession>(dialer, TlsSession::Role::kDialer, key);
  auto other = std::make_unique<TlsSession>(acceptor, TlsSession::Role::kAcceptor, key);
  ASSERT_FALSE(shake_hands(*one, dialer));
  await_arrival(dialer);
  ASSERT_FALSE(shake_hands(*other, acceptor));
  await_arrival(acceptor);
  ASSERT_TRUE(shake_hands(*one, dialer));
  std::vector<StreamPtr> near;
  near.push_back(std::make_unique<TlsStream>(std::move(sockets.first), std::move(one)));
  Link sender(std::move(near), "far");
  sender.send_note(1, pattern(100, 1));
  bool moved = false;
  ASSERT_TRUE(sender.progress(moved).ok());
  await_arrival(dialer);
  ASSERT_TRUE(shake_hands(*other, acceptor));  // takes the note from the socket, too

  std::vector<StreamPtr> far;
  far.push_back(std::make_unique<TlsStream>(std::move(sockets.second), std::move(other)));
  const auto receiver = std::make_shared<Link>(std::move(far), "near");
  Mesh mesh(0, {nullptr, receiver});
  ASSERT_TRUE(mesh.wait().ok());
  ASSERT_TRUE(mesh.progress(moved).ok());
  EXPECT_EQ(receiver->take_note(1), pattern(100, 1));
}

}  // namespace
}  // namespace elastic::transport
