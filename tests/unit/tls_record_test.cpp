#include "base/tls_record.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace elastic {
namespace {

using Bytes = std::vector<std::byte>;

constexpr unsigned char kEncrypted = 23;
constexpr std::uint16_t kLongest = (1U << 14U) + 256;  // RFC 8446, 5.2

Bytes record(unsigned char type, std::uint16_t length) {
  Bytes bytes(std::size_t{5} + length, std::byte{0xee});
  bytes[0] = std::byte{type};
  bytes[1] = std::byte{3};
  bytes[2] = type == kEncrypted ? std::byte{3} : std::byte{1};
  bytes[3] = static_cast<std::byte>(length >> 8U);
  bytes[4] = static_cast<std::byte>(length & 0xffU);
  return bytes;
}
/// A flight of a handshake, and what may follow.
Bytes records() {
  Bytes all;
  for (const Bytes& one : {record(22, 517), record(20, 1), record(kEncrypted, 53),
                           record(kEncrypted, kLongest), record(kEncrypted, 17)}) {
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(RecordLengths, ComeThroughInPiecesOfAnySize) {
  const Bytes sent = records();
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 600U, 100'000U}) {
    Bytes wire = sent;
    ASSERT_EQ(RecordLengths::mark(wire), wire.size());
    EXPECT_NE(wire, sent);
    RecordLengths lengths;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      ASSERT_TRUE(lengths.restore(std::span(wire).subspan(at, std::min(piece, wire.size() - at))));
    }
    EXPECT_EQ(wire, sent) << "in pieces of " << piece;
  }
}

TEST(RecordLengths, OnlyWholeRecordsAreMarked) {
  const Bytes one = record(kEncrypted, 20);
  Bytes bytes = one;
  bytes.insert(bytes.end(), one.begin(), one.end());
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(RecordLengths::mark(cut), size / one.size() * one.size());
  }
}

TEST(RecordLengths, OneThatIsDamagedIsNotWaitedFor) {
  const Bytes sent = record(kEncrypted, 1000);
  for (unsigned bit = 8; bit < 40; ++bit) {
    Bytes wire = sent;
    RecordLengths::mark(wire);
    wire[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    RecordLengths lengths;
    EXPECT_FALSE(lengths.restore(std::span(wire).first(5))) << "bit " << bit;
    EXPECT_TRUE(lengths.damaged());
  }
}

/// This includes pairs that cancel out in TCP's checksum, which adds up words of 16 bits.
TEST(RecordLengths, NoTwoFlippedBitsGoUnnoticed) {
  for (unsigned length = 1; length <= kLongest; length += 61) {
    const std::uint32_t sent =
        length << 16U | RecordLengths::checksum(static_cast<std::uint16_t>(length));
    for (unsigned one = 0; one < 32; ++one) {
      for (unsigned other = one; other < 32; ++other) {
        std::uint32_t came = sent ^ (1U << one);
        if (other != one) came ^= 1U << other;
        EXPECT_NE(RecordLengths::checksum(static_cast<std::uint16_t>(came >> 16U)), came & 0xffffU)
            << "length " << length << ", bits " << one << " and " << other;
      }
    }
  }
}

}  // namespace
}  // namespace elastic
