#include "collectives/plan/group_slots.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include "collectives/plan/group_block.hpp"

namespace elastic::plan {
namespace {

TEST(GroupSlots, HaveEachPartOfEachTensorOnce) {
  const std::vector<std::size_t> counts{0, 1, 7, 64, 1003, 3};
  for (const std::size_t element : {1U, 2U, 4U, 8U}) {
    for (std::size_t ranks = 1; ranks <= 6; ++ranks) {
      const GroupSlots slots(counts, element, ranks);
      EXPECT_EQ(slots.total(), slots.slot() * ranks);
      std::size_t end = 0;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        EXPECT_EQ(slots.place(i), end) << "a gap, or parts that overlap";
        end += slots.largest(i);
        std::size_t next = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(slots.begin(i, rank), next);
          EXPECT_LE(slots.count(i, rank), slots.largest(i));
          EXPECT_LE(slots.begin(i, rank) + slots.largest(i), counts[i]) << "beyond the tensor";
          next += slots.count(i, rank);
        }
        EXPECT_EQ(next, counts[i]);
      }
      EXPECT_EQ(end, slots.filled());
      EXPECT_EQ(slots.slot() * element % GroupSlots::kAlignment, 0U);
      EXPECT_LT((slots.slot() - end) * element, GroupSlots::kAlignment);
    }
  }
}

TEST(GroupSlots, OfNoTensorsAreEmpty) {
  const GroupSlots slots({}, 1, 3);
  EXPECT_EQ(slots.total(), 0U);
  EXPECT_EQ(slots.tensors(), 0U);
}

TEST(GroupBlock, HasRoomForCountsAndTensors) {
  const std::vector<std::size_t> bytes{0, 1, 64, 65};
  const GroupBlock block(bytes);
  std::size_t end = GroupBlock::head(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_GE(block.place(i), end);
    EXPECT_EQ(block.place(i) % GroupBlock::kAlignment, 0U);
    end = block.place(i) + bytes[i];
  }
  EXPECT_EQ(block.bytes(), 5 * GroupBlock::kAlignment);
  EXPECT_EQ(GroupBlock({}).bytes(), 0U);
}

}  // namespace
}  // namespace elastic::plan
