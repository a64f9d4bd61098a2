#include "base/handshake.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace elastic {
namespace {

using handshake::Acceptor;
using handshake::Dialer;
using handshake::Purpose;

template <std::size_t N>
std::span<const std::byte, N> fixed(const std::vector<std::byte>& bytes) {
  return std::span<const std::byte>(bytes).first<N>();
}

std::vector<std::byte> challenge_for(Acceptor& acceptor, const Dialer& dialer) {
  const std::vector<std::byte> hello = dialer.hello();
  const auto length = acceptor.hello(fixed<handshake::kHelloBytes>(hello));
  EXPECT_TRUE(length.ok()) << length.status().message();
  EXPECT_EQ(length.value(), hello.size() - handshake::kHelloBytes);
  return acceptor.challenge(std::span(hello).subspan(handshake::kHelloBytes));
}

TEST(Handshake, BothSidesAgreeWithOneSecret) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, "who I am");
  Acceptor acceptor(secret, Purpose::kData);
  const auto challenge = challenge_for(acceptor, dialer);
  ASSERT_EQ(challenge.size(), handshake::kChallengeBytes);
  const auto proof = dialer.answer(fixed<handshake::kChallengeBytes>(challenge));
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_TRUE(acceptor.check(fixed<handshake::kProofBytes>(proof.value())).ok());
  EXPECT_EQ(acceptor.context(), "who I am");
  const auto verdict = Acceptor::verdict();
  EXPECT_TRUE(Dialer::finish(verdict).ok());
}

TEST(Handshake, AWrongSecretIsRefusedOnBothSides) {
  const Dialer dialer(random_secret(), Purpose::kData, "");
  const Secret other = random_secret();
  Acceptor acceptor(other, Purpose::kData);
  const auto challenge = challenge_for(acceptor, dialer);
  const auto proof = dialer.answer(fixed<handshake::kChallengeBytes>(challenge));
  EXPECT_EQ(proof.status().code(), Code::kRefused);
  EXPECT_NE(proof.status().message().find("secret"), std::string::npos);
  const std::vector<std::byte> guess(handshake::kProofBytes, std::byte{7});
  EXPECT_EQ(acceptor.check(fixed<handshake::kProofBytes>(guess)).code(), Code::kRefused);
}

TEST(Handshake, AProofCannotBeReflected) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, "context");
  Acceptor acceptor(secret, Purpose::kData);
  const auto challenge = challenge_for(acceptor, dialer);
  const std::vector<std::byte> its_own(challenge.begin() + 40, challenge.end());
  EXPECT_EQ(acceptor.check(fixed<handshake::kProofBytes>(its_own)).code(), Code::kRefused);
}

TEST(Handshake, AProofCannotBeReplayed) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, "context");
  Acceptor first(secret, Purpose::kData);
  const auto challenge = challenge_for(first, dialer);
  const auto proof = dialer.answer(fixed<handshake::kChallengeBytes>(challenge));
  ASSERT_TRUE(proof.ok());
  Acceptor second(secret, Purpose::kData);
  (void)challenge_for(second, dialer);
  EXPECT_EQ(second.check(fixed<handshake::kProofBytes>(proof.value())).code(), Code::kRefused);
}

TEST(Handshake, TheContextIsBoundIn) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, "lane 0");
  Acceptor acceptor(secret, Purpose::kData);
  std::vector<std::byte> hello = dialer.hello();
  hello.back() = std::byte{'1'};  // somebody in between changes the lane
  ASSERT_TRUE(acceptor.hello(fixed<handshake::kHelloBytes>(hello)).ok());
  const auto challenge = acceptor.challenge(std::span(hello).subspan(handshake::kHelloBytes));
  EXPECT_EQ(dialer.answer(fixed<handshake::kChallengeBytes>(challenge)).status().code(),
            Code::kRefused);
}

TEST(Handshake, BothSidesHaveOneKeyForEachConnection) {
  const Secret secret = random_secret();
  std::set<Secret> keys;
  for (int round = 0; round < 3; ++round) {
    const Dialer dialer(secret, Purpose::kData, "lane 0", true);
    Acceptor acceptor(secret, Purpose::kData, true);
    const auto challenge = challenge_for(acceptor, dialer);
    const auto proof = dialer.answer(fixed<handshake::kChallengeBytes>(challenge));
    ASSERT_TRUE(proof.ok()) << proof.status().message();
    EXPECT_TRUE(acceptor.agree().ok());
    ASSERT_TRUE(acceptor.check(fixed<handshake::kProofBytes>(proof.value())).ok());
    const Secret key = dialer.session_key(fixed<handshake::kChallengeBytes>(challenge));
    EXPECT_EQ(acceptor.session_key(), key);
    // Nothing that crossed the wire.
    EXPECT_FALSE(std::equal(key.begin(), key.end(), proof.value().begin()));
    EXPECT_FALSE(std::equal(key.begin(), key.end(), challenge.begin() + 40));
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 3U);
}

TEST(Handshake, ASideThatDoesNotEncryptAsTheOtherIsNamedOnBoth) {
  const Secret secret = random_secret();
  for (const bool encrypts : {false, true}) {
    const Dialer dialer(secret, Purpose::kData, "", encrypts);
    Acceptor acceptor(secret, Purpose::kData, !encrypts);
    const auto challenge = challenge_for(acceptor, dialer);
    const Status at_dialer = dialer.answer(fixed<handshake::kChallengeBytes>(challenge)).status();
    const Status at_acceptor = acceptor.agree();
    const std::string here = "this side encrypts its connections";
    const std::string there = "the other side encrypts its connections";
    for (const Status& status : {at_dialer, at_acceptor}) {
      EXPECT_EQ(status.code(), Code::kRefused);
      EXPECT_NE(status.message().find("ELASTIC_ENCRYPT"), std::string::npos) << status.message();
    }
    EXPECT_NE(at_dialer.message().find(encrypts ? here : there), std::string::npos);
    EXPECT_NE(at_acceptor.message().find(encrypts ? there : here), std::string::npos);
  }
}

TEST(Handshake, AnotherPurposeIsRefused) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kControl, "");
  Acceptor acceptor(secret, Purpose::kData);
  const auto hello = dialer.hello();
  EXPECT_EQ(acceptor.hello(fixed<handshake::kHelloBytes>(hello)).status().code(), Code::kProtocol);
}

TEST(Handshake, StrangersAndOtherVersionsAreNamed) {
  const Secret secret = random_secret();
  Acceptor acceptor(secret, Purpose::kData);
  const std::string http = "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n";
  const auto* const text = reinterpret_cast<const std::byte*>(http.data());
  EXPECT_EQ(
      acceptor.hello(std::span(text, http.size()).first<handshake::kHelloBytes>()).status().code(),
      Code::kProtocol);
  auto hello = Dialer(secret, Purpose::kData, "").hello();
  hello[4] = std::byte{9};
  const Status version = acceptor.hello(fixed<handshake::kHelloBytes>(hello)).status();
  EXPECT_EQ(version.code(), Code::kProtocol);
  EXPECT_NE(version.message().find("version 9"), std::string::npos) << version.message();
}

/// Runs a whole handshake with one bit of what crosses the wire flipped: `bit` counts over hello,
/// challenge and proof. Returns whether both sides are content.
bool succeeds_with_flipped_bit(const Secret& secret, std::size_t bit, std::size_t& bits) {
  std::size_t start = 0;
  const auto cross_the_wire = [&](std::vector<std::byte>& bytes) {
    if (bit / 8 >= start && bit / 8 < start + bytes.size()) {
      bytes[bit / 8 - start] ^= static_cast<std::byte>(1U << (bit % 8));
    }
    start += bytes.size();
    bits = start * 8;
  };
  const Dialer dialer(secret, Purpose::kData, "me, you, lane 0");
  Acceptor acceptor(secret, Purpose::kData);
  std::vector<std::byte> hello = dialer.hello();
  const std::size_t context = hello.size() - handshake::kHelloBytes;
  cross_the_wire(hello);
  const auto length = acceptor.hello(fixed<handshake::kHelloBytes>(hello));
  // Who announces another length than it sends is waited for, or what is left over is taken for the
  // proof.
  if (!length.ok() || length.value() != context) return false;
  auto challenge = acceptor.challenge(std::span(hello).subspan(handshake::kHelloBytes));
  cross_the_wire(challenge);
  auto proof = dialer.answer(fixed<handshake::kChallengeBytes>(challenge));
  if (!proof.ok()) return false;
  cross_the_wire(proof.value());
  return acceptor.check(fixed<handshake::kProofBytes>(proof.value())).ok();
}

TEST(Handshake, EveryFlippedBitThatMattersIsRefused) {
  const Secret secret = random_secret();
  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t bits = 0;
  ASSERT_TRUE(succeeds_with_flipped_bit(secret, kNone, bits));
  // Byte 7 of the challenge, which is behind the hello, is padding.
  const std::size_t challenge = handshake::kHelloBytes + std::string("me, you, lane 0").size();
  const std::set<std::size_t> padding = {challenge + 7};
  const std::size_t all = bits;
  for (std::size_t bit = 0; bit < all; ++bit) {
    if (padding.contains(bit / 8)) continue;
    EXPECT_FALSE(succeeds_with_flipped_bit(secret, bit, bits)) << "bit " << bit;
  }
}

TEST(Handshake, AnAcceptorOfAnotherVersionOrNoneIsNamed) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, "");
  Acceptor acceptor(secret, Purpose::kData);
  auto challenge = challenge_for(acceptor, dialer);
  challenge[4] = std::byte{9};
  const Status version = dialer.answer(fixed<handshake::kChallengeBytes>(challenge)).status();
  EXPECT_EQ(version.code(), Code::kProtocol);
  EXPECT_NE(version.message().find("version 9"), std::string::npos) << version.message();
  const std::vector<std::byte> page(handshake::kChallengeBytes, std::byte{'H'});
  EXPECT_EQ(dialer.answer(fixed<handshake::kChallengeBytes>(page)).status().code(),
            Code::kProtocol);
  for (int verdict = 0; verdict < 256; ++verdict) {
    const std::array<std::byte, 1> bytes = {static_cast<std::byte>(verdict)};
    EXPECT_EQ(Dialer::finish(bytes).ok(), verdict == 1);
  }
}

TEST(Handshake, TheLargestContextIsLetIn) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kData, std::string(handshake::kMaxContextBytes, 'x'));
  Acceptor acceptor(secret, Purpose::kData);
  EXPECT_EQ(challenge_for(acceptor, dialer).size(), handshake::kChallengeBytes);
  const Dialer larger(secret, Purpose::kData, std::string(handshake::kMaxContextBytes + 1, 'x'));
  const auto hello = larger.hello();
  EXPECT_EQ(acceptor.hello(fixed<handshake::kHelloBytes>(hello)).status().code(), Code::kProtocol);
}

TEST(Handshake, TheContextIsBoundedBeforeItIsRead) {
  const Secret secret = random_secret();
  Acceptor acceptor(secret, Purpose::kData);
  auto hello = Dialer(secret, Purpose::kData, "").hello();
  hello[43] = std::byte{0x7f};
  EXPECT_EQ(acceptor.hello(fixed<handshake::kHelloBytes>(hello)).status().code(), Code::kProtocol);
}

class SecretFile : public testing::Test {
 protected:
  SecretFile() {
    std::string pattern = testing::TempDir() + "secret-XXXXXX";
    const UniqueFd made(::mkstemp(pattern.data()));
    path_ = pattern;
  }
  ~SecretFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const {
    const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_TRUNC));
    ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  std::string path_;
};

TEST_F(SecretFile, HoldsHexWithWhiteSpaceAround) {
  const Secret secret = random_secret();
  write("  " + to_hex(secret) + "\n");
  const auto read = read_secret_file(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value(), secret);
}

TEST_F(SecretFile, CanBeReadTwiceFromOneDescriptor) {
  const Secret secret = random_secret();
  write(to_hex(secret));
  const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(read_secret_fd(file.get()).value(), secret);
  EXPECT_EQ(read_secret_fd(file.get()).value(), secret);
}

TEST(SecretDescriptor, CanBeAPipe) {
  const Secret secret = random_secret();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const std::string text = to_hex(secret) + "\n";
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  writer.reset();
  EXPECT_EQ(read_secret_fd(reader.get()).value(), secret);
  const Status empty = read_secret_fd(reader.get()).status();
  EXPECT_EQ(empty.code(), Code::kInvalidArgument);
  EXPECT_NE(empty.message().find("descriptor"), std::string::npos);
}

TEST_F(SecretFile, WhatIsWrongIsSaidWithTheSource) {
  for (const char* text : {"", "abc", "\n\n"}) {
    write(text);
    const Status status = read_secret_file(path_).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(path_), std::string::npos);
  }
  write(std::string(63, 'a') + "g");
  EXPECT_EQ(read_secret_file(path_).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(read_secret_file(path_ + ".none").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(read_secret_fd(-1).status().code(), Code::kInvalidArgument);
}

TEST_F(SecretFile, ThatOthersCanReadIsRefused) {
  write(to_hex(random_secret()));
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  const Status status = read_secret_file(path_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("chmod 600"), std::string::npos);
}

TEST(RandomId, IsHexAndDiffersEveryTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = random_id();
    ASSERT_EQ(id.size(), 32U);
    ASSERT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    ASSERT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace elastic
