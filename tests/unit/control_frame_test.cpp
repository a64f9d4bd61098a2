#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kText = encode(Suspect{7, "3f2a", "connection reset"});

FrameHeader header_of(const std::string& frame) {
  FrameHeader header{};
  std::transform(frame.begin(), frame.begin() + kFrameHeaderBytes, header.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return header;
}

/// Reads a frame as a connection does.
Status read(const std::string& frame) {
  const Result<FrameStart> start = decode_start(header_of(frame));
  if (!start.ok()) return start.status();
  return check_text(start.value(), frame.substr(kFrameHeaderBytes));
}

std::string flipped(std::string frame, std::size_t bit) {
  frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << (bit % 8)));
  return frame;
}

TEST(ControlFrame, IsReadAsItWasSent) {
  const std::string frame = framed(kText);
  ASSERT_TRUE(read(frame).ok()) << read(frame).message();
  EXPECT_EQ(frame.substr(kFrameHeaderBytes), kText);
  EXPECT_EQ(decode_start(header_of(frame)).value(), frame_start(kText));
}

TEST(ControlFrame, BeginsWithTheLengthMostSignificantByteFirst) {
  const FrameHeader header = encode_start({0x10203, 0xa0b0c0d0});
  EXPECT_EQ(header[1], std::byte{1});
  EXPECT_EQ(header[3], std::byte{3});
  EXPECT_EQ(header[4], std::byte{0xa0});
}

TEST(ControlFrame, EverySingleFlippedBitIsNoticed) {
  const std::string frame = framed(kText);
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    const Status status = read(flipped(frame, bit));
    ASSERT_EQ(status.code(), Code::kDamaged) << "bit " << bit;
  }
}

TEST(ControlFrame, WhatWasDamagedIsNamed) {
  const std::string frame = framed(kText);
  EXPECT_THAT(read(flipped(frame, 3)).message(),
              AllOf(HasSubstr("header of a control frame"), HasSubstr("damaged on the way"),
                    HasSubstr("checksum")));
  EXPECT_THAT(read(flipped(frame, 8 * kFrameHeaderBytes + 3)).message(),
              AllOf(HasSubstr("a control frame of " + std::to_string(kText.size()) + " bytes"),
                    HasSubstr("damaged on the way"), HasSubstr("checksum")));
}

TEST(ControlFrame, LengthsAreBounded) {
  for (const std::size_t bytes : {std::size_t{0}, kMaxMessageBytes + 1, std::size_t{0xFFFFFFFF}}) {
    const auto start = decode_start(encode_start({static_cast<std::uint32_t>(bytes), 1}));
    EXPECT_EQ(start.status().code(), Code::kProtocol) << bytes;
  }
  EXPECT_TRUE(decode_start(encode_start({kMaxMessageBytes, 1})).ok());
}

}  // namespace
}  // namespace elastic::rendezvous
