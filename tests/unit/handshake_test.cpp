#include "base/handshake.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hmac.hpp"
#include "base/openssl_check.hpp"
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
  return acceptor.challenge(std::span(hello).subspan(handshake::kHelloBytes)).value();
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
  hello.back() = std::byte{'1'};  // an attacker on the path changes the lane
  ASSERT_TRUE(acceptor.hello(fixed<handshake::kHelloBytes>(hello)).ok());
  const auto challenge =
      acceptor.challenge(std::span(hello).subspan(handshake::kHelloBytes)).value();
  EXPECT_EQ(dialer.answer(fixed<handshake::kChallengeBytes>(challenge)).status().code(),
            Code::kRefused);
}

TEST(Handshake, BothSidesHaveOneKeyForEachConnection) {
  const Secret secret = random_secret();
  std::set<SessionKey> keys;
  for (int round = 0; round < 3; ++round) {
    const Dialer dialer(secret, Purpose::kData, "lane 0", true);
    Acceptor acceptor(secret, Purpose::kData, true);
    const auto challenge = challenge_for(acceptor, dialer);
    const auto proof = dialer.answer(fixed<handshake::kChallengeBytes>(challenge));
    ASSERT_TRUE(proof.ok()) << proof.status().message();
    EXPECT_TRUE(acceptor.agree().ok());
    ASSERT_TRUE(acceptor.check(fixed<handshake::kProofBytes>(proof.value())).ok());
    const SessionKey key = dialer.session_key(fixed<handshake::kChallengeBytes>(challenge)).value();
    EXPECT_EQ(acceptor.session_key().value(), key);
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
  // If the announced length is too large, the acceptor waits for the rest; if it is too small, the
  // rest is read as the proof.
  if (!length.ok() || length.value() != context) return false;
  auto challenge = acceptor.challenge(std::span(hello).subspan(handshake::kHelloBytes)).value();
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

TEST(OpensslCheck, PassesWhereOpensslHasWhatIsNeeded) {
  for (const bool encrypt : {false, true}) {
    const Status checked = check_openssl(encrypt);
    EXPECT_TRUE(checked.ok()) << checked.message();
  }
}

/// Runs with OPENSSL_CONF naming a configuration that has no digests; see CMakeLists.txt.
class WithoutSha256 : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("OPENSSL_CONF") == nullptr) GTEST_SKIP() << "needs an OPENSSL_CONF";
  }
};

TEST_F(WithoutSha256, AProofOfZerosIsNotLetIn) {
  const Secret secret = random_secret();
  Acceptor acceptor(secret, Purpose::kControl);
  const auto hello = Dialer(secret, Purpose::kControl, "").hello();
  ASSERT_TRUE(acceptor.hello(fixed<handshake::kHelloBytes>(hello)).ok());
  EXPECT_EQ(acceptor.challenge({}).status().code(), Code::kInternal);
  const std::vector<std::byte> zeros(handshake::kProofBytes);
  EXPECT_EQ(acceptor.check(fixed<handshake::kProofBytes>(zeros)).code(), Code::kInternal);
  EXPECT_EQ(acceptor.session_key().status().code(), Code::kInternal);
}

TEST_F(WithoutSha256, ADialerDoesNotTakeAChallengeOfZeros) {
  const Secret secret = random_secret();
  const Dialer dialer(secret, Purpose::kControl, "");
  std::vector<std::byte> challenge = dialer.hello();  // magic and version are the same
  challenge.resize(handshake::kChallengeBytes);
  std::fill(challenge.begin() + 6, challenge.end(), std::byte{});
  const Status answered = dialer.answer(fixed<handshake::kChallengeBytes>(challenge)).status();
  EXPECT_EQ(answered.code(), Code::kInternal) << answered.message();
}

TEST_F(WithoutSha256, TheCheckNamesTheConfiguration) {
  for (const bool encrypt : {false, true}) {
    const Status checked = check_openssl(encrypt);
    EXPECT_EQ(checked.code(), Code::kUnavailable);
    EXPECT_NE(checked.message().find("HMAC-SHA256"), std::string::npos) << checked.message();
    EXPECT_NE(checked.message().find(std::getenv("OPENSSL_CONF")), std::string::npos)
        << checked.message();
  }
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

/// The line of /proc/self/smaps with the flags of the mapping that has this address.
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  for (bool here = false; std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      here = first <= at && at < last;
    }
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

TEST(SecretMemory, IsNotDumpedAndWipedInChildren) {
  const Secret secret = random_secret();
  const std::string flags = flags_of(secret.bytes().data());
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  EXPECT_NE(flags.find(" wf "), std::string::npos) << flags;
  const Secret copy = secret;  // NOLINT: that it shares the bytes is what is tested
  EXPECT_EQ(copy.bytes().data(), secret.bytes().data());
}

TEST(SecretMemory, AForkedChildHasNoSecretAndProvesNothing) {
  const Secret secret = random_secret();
  const pid_t child = ::fork();
  if (child == 0) {
    Acceptor acceptor(secret, Purpose::kControl);
    const bool none = secret.bytes().empty() && !acceptor.challenge({}).ok();
    ::_exit(none ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(secret.bytes().empty());
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
}

TEST_F(SecretFile, ThatOthersCanReadIsRefused) {
  write(to_hex(random_secret()));
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  const Status status = read_secret_file(path_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("chmod 600"), std::string::npos);
}

TEST_F(SecretFile, OfAnotherUserIsRefused) {
  if (::getuid() != 0) GTEST_SKIP() << "giving a file away needs root";
  constexpr uid_t kOtherUser = 12345;
  write(to_hex(random_secret()));
  ASSERT_TRUE(read_secret_file(path_).ok());
  ASSERT_EQ(::chown(path_.c_str(), kOtherUser, kOtherUser), 0);
  const Status status = read_secret_file(path_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("belongs to user 12345"), std::string::npos) << status.message();
}

/// As Kubernetes mounts a Secret. The process of another user reads it as a member of the group.
TEST_F(SecretFile, OfRootMayBeReadableByAGroup) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be another user for a moment";
  constexpr gid_t kGroup = 12345;
  write(to_hex(random_secret()));
  ASSERT_EQ(::chown(path_.c_str(), 0, kGroup), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0440), 0);
  EXPECT_FALSE(read_secret_file(path_).ok());  // root needs no group
  ASSERT_EQ(::setegid(kGroup), 0);
  ASSERT_EQ(::seteuid(12345), 0);
  const Status by_group = read_secret_file(path_).status();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);
  ASSERT_EQ(::seteuid(12345), 0);
  const Status by_all = read_secret_file(path_).status();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::setegid(0), 0);
  EXPECT_TRUE(by_group.ok()) << by_group.message();
  EXPECT_EQ(by_all.code(), Code::kInvalidArgument);
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
