#include "collectives/backend/payload.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace elastic::collectives {
namespace {

class OnDeviceOnly final : public DeviceResult {
 public:
  Result<void*> begin_unpack() override { return static_cast<void*>(nullptr); }
};

std::string text_of(const Payload& payload, std::size_t from, std::size_t bytes) {
  return {reinterpret_cast<const char*>(payload.data.data()) + from, bytes};
}

Payload packed(const std::string& text) {
  Payload made;
  made.data.resize(text.size());
  std::memcpy(made.data.data(), text.data(), text.size());
  return made;
}

TEST(Payload, AppendsZeroCopyTensorsToThePackedOnes) {
  std::array<std::byte, 3> result{std::byte{'x'}, std::byte{'y'}, std::byte{'z'}};
  Payload payload = packed("12");
  const ZeroCopyTensor tensor{DType::kU8, 3, nullptr, result.data()};
  payload.form = ZeroCopyTensors{{&tensor, 1}};
  payload.make_contiguous();
  EXPECT_TRUE(payload.zero_copy().empty());
  ASSERT_EQ(payload.data.size(), kSectionAlignment + 3);
  EXPECT_EQ(text_of(payload, 0, 2), "12");
  EXPECT_EQ(text_of(payload, kSectionAlignment, 3), "xyz");
}

TEST(Payload, GathersTheSectionsOfAState) {
  std::array<std::byte, 1> first{std::byte{'x'}};
  std::array<std::byte, 1> second{std::byte{'y'}};
  Payload payload;
  payload.form = StateSections{{first, second}};
  payload.make_contiguous();
  ASSERT_EQ(payload.data.size(), kSectionAlignment + 1);
  EXPECT_EQ(text_of(payload, 0, 1), "x");
  EXPECT_EQ(text_of(payload, kSectionAlignment, 1), "y");
  EXPECT_TRUE(std::holds_alternative<Packed>(payload.form));
}

TEST(Payload, LeavesBlocksAsTheyAre) {
  Payload payload = packed("12");
  payload.form = Blocks{{1, 1}, true};
  payload.make_contiguous();
  payload.release_tensors();
  EXPECT_EQ(text_of(payload, 0, 2), "12");
  EXPECT_EQ(payload.counts().size(), 2U);
  EXPECT_TRUE(payload.own_block_complete());
}

TEST(Payload, KeepsAResultOnADeviceUntilItIsDelivered) {
  Payload payload;
  payload.form = ResultOnDevice{std::make_shared<OnDeviceOnly>(), {1, 1}};
  EXPECT_NE(payload.device_result(), nullptr);
  EXPECT_EQ(payload.counts().size(), 2U);
  EXPECT_FALSE(payload.own_block_complete());
  payload.release_tensors();
  EXPECT_EQ(payload.device_result(), nullptr) << "its memory is not free";
  EXPECT_TRUE(payload.stays_here());
}

TEST(Payload, KeepsItsMemoryWhenItIsCleared) {
  Payload payload = packed("12");
  payload.form = Blocks{{2}};
  payload.clear();
  EXPECT_TRUE(payload.counts().empty());
  EXPECT_EQ(payload.data.size(), 0U);
  EXPECT_GE(payload.data.capacity(), 2U);
}

TEST(Payload, SwapsFormAndData) {
  Payload one = packed("12");
  one.form = Blocks{{2}};
  Payload other;
  one.swap(other);
  EXPECT_TRUE(one.counts().empty());
  EXPECT_EQ(other.counts().size(), 1U);
  EXPECT_EQ(text_of(other, 0, 2), "12");
}

}  // namespace
}  // namespace elastic::collectives
