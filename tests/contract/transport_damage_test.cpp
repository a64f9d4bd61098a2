// Links through a proxy that flips a bit, over every transport that uses a network.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

constexpr std::size_t kIntact = static_cast<std::size_t>(-1);

/// Everything that the near end sends passes through here.
class DamagedLink : public testing::Test {
 protected:
  void SetUp() override {
    near_ = end_of(tcp4_pair(), from_near_);
    far_ = end_of(tcp4_pair(), to_far_);
    near_->begin(tag_at(7), kCall);
    far_->begin(tag_at(7), kCall);
  }
  static std::unique_ptr<Link> end_of(StreamPair pair, StreamPtr& other) {
    std::vector<StreamPtr> streams;
    streams.push_back(std::move(pair.first));
    other = std::move(pair.second);
    return std::make_unique<Link>(std::move(streams), "worker x");
  }

  /// Passes bytes on, but for bit `damaged` of them, until the far end fails or is `done`.
  template <typename Done>
  Status pass_on(std::size_t damaged, const Done& done) {
    const TimePoint deadline = Clock::now() + std::chrono::seconds(20);
    std::size_t passed = 0;
    ByteVector bytes(1 << 16);
    while (!done()) {
      bool moved = false;
      if (Status status = near_->progress(moved); !status.ok()) return status;
      const std::size_t got = from_near_->read(bytes).value();
      if (damaged / 8 >= passed && damaged / 8 < passed + got) {
        bytes[damaged / 8 - passed] ^= static_cast<std::byte>(1U << (damaged % 8));
      }
      passed += got;
      for (std::span<const std::byte> left = std::span(bytes).first(got); !left.empty();) {
        const std::array<std::span<const std::byte>, 1> parts = {left};
        left = left.subspan(to_far_->write(parts).value());
        if (Status status = far_->progress(moved); !status.ok()) return status;
      }
      if (Status status = far_->progress(moved); !status.ok()) return status;
      if (Clock::now() > deadline) return Status(Code::kTimeout, "nothing came of it");
    }
    return {};
  }

  std::unique_ptr<Link> near_;
  std::unique_ptr<Link> far_;
  StreamPtr from_near_;
  StreamPtr to_far_;
};

void add_bytes(std::byte* into, const std::byte* left, const std::byte* right,
               std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    into[i] = std::byte(std::to_integer<unsigned>(left[i]) + std::to_integer<unsigned>(right[i]));
  }
}

TEST_F(DamagedLink, WhatIsNotDamagedArrives) {
  const ByteVector sent = pattern(600'000, 1);
  ByteVector got(sent.size());
  far_->receive({got});
  near_->send(sent);
  const Status status = pass_on(kIntact, [&] { return far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(got == sent);
}

TEST_F(DamagedLink, AFlippedBitOfAMessageIsNamedAndNothingCounts) {
  constexpr std::size_t kBytes = 10'000;
  const ByteVector sent = pattern(kBytes, 1);
  for (const std::size_t byte : {std::size_t{0}, std::size_t{4096}, kBytes - 1}) {
    for (const Combine& combine : {Combine{}, Combine{add_bytes, 1}}) {
      SetUp();
      ByteVector got(kBytes);
      far_->receive({got, combine});
      near_->send(sent);
      const Status status = pass_on(8 * (FrameHeader::kBytes + byte) + 3, [] { return false; });
      EXPECT_EQ(status.code(), Code::kProtocol);
      EXPECT_NE(status.message().find("worker x: 10000 bytes of operation 7 were damaged"),
                std::string::npos)
          << status.message();
      EXPECT_EQ(far_->received(), 0U);
      EXPECT_TRUE(far_->broken());
    }
  }
}

TEST_F(DamagedLink, AFlippedBitOfAHeaderIsNamed) {
  for (std::size_t bit = 0; bit < 8 * FrameHeader::kBytes; bit += 37) {
    SetUp();
    ByteVector got(100);
    far_->receive({got});
    near_->send(got);
    const Status status = pass_on(bit, [] { return false; });
    EXPECT_EQ(status.code(), Code::kProtocol) << "bit " << bit << ": " << status.message();
    EXPECT_EQ(far_->received(), 0U);
  }
}

TEST_F(DamagedLink, AFlippedBitOfANoteIsNamed) {
  near_->send_note(1, pattern(1000, 1));
  const Status status = pass_on(8 * (FrameHeader::kBytes + 500), [] { return false; });
  EXPECT_EQ(status.code(), Code::kProtocol);
  EXPECT_NE(status.message().find("1000 bytes of a note were damaged"), std::string::npos)
      << status.message();
  EXPECT_EQ(far_->take_note(1), std::nullopt);
}

}  // namespace
}  // namespace elastic::transport
