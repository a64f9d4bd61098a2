// A peer that does not keep to the protocol, over every transport: the link breaks, and nothing is
// written where it has no business.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

TEST_P(TransportContract, BytesThatAreNoFrameBreakTheLink) {
  connect_bare();
  near_->begin(tag_at(0), kCall);
  const ByteVector garbage = pattern(1000, 3);
  const std::array<std::span<const std::byte>, 1> parts = {garbage};
  ASSERT_EQ(bare_.front()->write(parts).value(), garbage.size());
  EXPECT_EQ(failure_of_near().code(), Code::kProtocol);
  EXPECT_TRUE(near_->broken());
}

TEST_P(TransportContract, StripesThatDoNotFitTheirMessageBreakTheLink) {
  struct Stripe {
    std::uint64_t offset;
    std::size_t bytes;
  };
  for (const auto& [offset, bytes] :
       {Stripe{0, 101}, Stripe{1, 100}, Stripe{~std::uint64_t{0}, 4}, Stripe{4, 6}, Stripe{2, 4}}) {
    connect_bare();
    near_->begin(tag_at(0), kCall);
    ByteVector into(100);
    near_->receive({into, {add_i32, 4}});
    write_frame(*bare_.front(), 0, offset, ByteVector(bytes));
    EXPECT_EQ(failure_of_near().code(), Code::kProtocol) << offset << " " << bytes;
    EXPECT_TRUE(std::ranges::all_of(into, [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST_P(TransportContract, MoreBytesThanAMessageHasBreakTheLink) {
  connect_bare();
  near_->begin(tag_at(0), kCall);
  ByteVector into(100);
  near_->receive({into});
  write_frame(*bare_.front(), 0, 0, pattern(100, 1));
  write_frame(*bare_.front(), 0, 0, pattern(100, 2));
  EXPECT_EQ(failure_of_near().code(), Code::kProtocol);
  EXPECT_EQ(into, pattern(100, 1));  // the message was complete: its memory is no longer ours
}

TEST_P(TransportContract, ATooLargeNoteBreaksTheLink) {
  connect_bare();
  near_->begin(tag_at(0), kCall);
  FrameHeader header;
  header.kind = FrameKind::kNote;
  header.length = Link::kMaxNoteBytes + 1;
  std::array<std::byte, FrameHeader::kBytes> encoded;
  encode(header, encoded);
  const std::array<std::span<const std::byte>, 1> parts = {encoded};
  ASSERT_TRUE(bare_.front()->write(parts).ok());
  EXPECT_EQ(failure_of_near().code(), Code::kProtocol);
}

}  // namespace
}  // namespace elastic::transport
