// Connections to a running job's ports without its secret, but with recorded handshakes of members.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/unauthenticated_fixture.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kNonceAt = 8;  // in hello and challenge
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofAt = 40;  // in the challenge

using Challenge = std::array<std::byte, handshake::kChallengeBytes>;
using Proof = std::array<std::byte, handshake::kProofBytes>;
using Verdict = std::array<std::byte, handshake::kVerdictBytes>;

Proof proof_in(const Challenge& challenge) {
  Proof proof{};
  std::copy_n(challenge.begin() + kProofAt, proof.size(), proof.begin());
  return proof;
}

class WithoutTheSecret : public UnauthenticatedFixture {
 protected:
  Secret secret() const { return read_secret_file(job_.secret_file().string()).value(); }
  static std::string context() { return R"({"protocol":2,"job":"fault","role":"control"})"; }
};

TEST_F(WithoutTheSecret, AWorkerIsRefusedAndSaysWhy) {
  const auto other = job_.folder() / "other-secret";
  write_secret(other, '6');
  FaultWorker& stranger = job_.start(arguments(), {"ELASTIC_SECRET_FILE=" + other.string()});
  EXPECT_EQ(stranger.wait(kLong), 3) << job_.text();
  EXPECT_THAT(stranger.log().told("failed "), HasSubstr("refused"));
  EXPECT_THAT(stranger.log().told("failed "), HasSubstr("wrong secret"));
  const auto members = job_.others({3});
  EXPECT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
  EXPECT_EQ(generation(*members.front()), 1U);
  finish(job_, members);
}

TEST_F(WithoutTheSecret, AHandshakeThatWasHeardCannotBeReplayed) {
  for (const Door& door : doors()) {
    const handshake::Dialer member(secret(), door.purpose, context(), encrypted());
    Stranger heard(door.port);
    heard.send(member.hello());
    const auto challenge = heard.receive<handshake::kChallengeBytes>();
    ASSERT_TRUE(challenge.has_value()) << door.name;
    const auto answer = member.answer(*challenge);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    heard.send(answer.value());
    // The answer admits only the member itself. (A data port expects a greeting of its own.)
    if (door.purpose == handshake::Purpose::kControl) {
      EXPECT_TRUE(heard.receive<handshake::kVerdictBytes>().has_value());
    }
    Stranger replays(door.port);
    replays.send(member.hello());
    ASSERT_TRUE(replays.receive<handshake::kChallengeBytes>().has_value()) << door.name;
    replays.send(answer.value());
    EXPECT_TRUE(replays.is_dropped()) << door.name;
  }
  expect_unaffected();
}

TEST_F(WithoutTheSecret, TheAcceptorsOwnProofIsNone) {
  for (const Door& door : doors()) {
    Stranger echo(door.port);
    echo.send(handshake::Dialer({}, door.purpose, context(), encrypted()).hello());
    const auto challenge = echo.receive<handshake::kChallengeBytes>();
    ASSERT_TRUE(challenge.has_value()) << door.name;
    echo.send(proof_in(*challenge));
    EXPECT_TRUE(echo.is_dropped()) << door.name;
  }
  expect_unaffected();
}

/// The acceptor is made to prove itself over its own nonce, on a second connection.
TEST_F(WithoutTheSecret, AChallengeThatIsReflectedGivesNoProof) {
  for (const Door& door : doors()) {
    Stranger first(door.port);
    std::vector<std::byte> hello =
        handshake::Dialer({}, door.purpose, context(), encrypted()).hello();
    first.send(hello);
    const auto asked = first.receive<handshake::kChallengeBytes>();
    ASSERT_TRUE(asked.has_value()) << door.name;
    std::copy_n(asked->begin() + kNonceAt, kNonceBytes, hello.begin() + kNonceAt);
    Stranger second(door.port);
    second.send(hello);
    const auto answered = second.receive<handshake::kChallengeBytes>();
    ASSERT_TRUE(answered.has_value()) << door.name;
    first.send(proof_in(*answered));
    EXPECT_TRUE(first.is_dropped()) << door.name;
  }
  expect_unaffected();
}

TEST_F(WithoutTheSecret, AProofForOneKindOfPortIsNoneForAnother) {
  const std::vector<Door> both = doors();
  for (const auto& [wanted, shown] : {std::pair(both[0], both[1]), std::pair(both[1], both[0])}) {
    // Knows the secret, but for the other purpose.
    const handshake::Dialer dialer(secret(), shown.purpose, context(), encrypted());
    std::vector<std::byte> hello = dialer.hello();
    Stranger honest(wanted.port);
    honest.send(hello);
    EXPECT_FALSE(honest.receive<handshake::kVerdictBytes + handshake::kChallengeBytes>());

    hello[6] = static_cast<std::byte>(wanted.purpose);
    Stranger liar(wanted.port);
    liar.send(hello);
    const auto challenge = liar.receive<handshake::kChallengeBytes>();
    ASSERT_TRUE(challenge.has_value()) << wanted.name;
    EXPECT_FALSE(dialer.answer(*challenge).ok()) << "its proof is good for another purpose";
    liar.send(proof_in(*challenge));
    EXPECT_TRUE(liar.is_dropped()) << wanted.name;
  }
  expect_unaffected();
}

}  // namespace
}  // namespace elastic::testing
