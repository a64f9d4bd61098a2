#include "coordinator/addressed_blocks.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using Ids = std::vector<WorkerId>;
using Counts = std::vector<std::uint64_t>;

Contributors workers(Ids ids) {
  return {std::make_shared<const Ids>(std::move(ids)), 4};
}

Members members(Ids ids) {
  Members made;
  made.generation = 5;
  made.rank = 1;
  made.incarnations.resize(ids.size());
  made.ids = std::make_shared<const Ids>(std::move(ids));
  return made;
}

class AddressedBlocksTest : public testing::Test {
 protected:
  AddressedBlocks blocks(std::vector<std::size_t> counts, const Contributors& to) {
    return {{data_.data(), data_.size(), DType::kI32, {}}, std::move(counts), to};
  }
  std::vector<std::int32_t> packed(const AddressedBlocks& blocks, const Members& view) {
    collectives::Buffer buffer;
    blocks.pack(view, buffer);
    std::vector<std::int32_t> values(buffer.size() / 4);
    if (!values.empty()) std::memcpy(values.data(), buffer.data(), buffer.size());
    return values;
  }
  std::string fault(const AddressedBlocks& blocks, const Members& view) {
    const auto counts = blocks.counts_for(view);
    EXPECT_EQ(counts.status().code(), Code::kMismatch);
    return counts.status().message();
  }

  const std::vector<std::int32_t> data_ = {10, 11, 12, 20, 30, 31};
};

TEST_F(AddressedBlocksTest, AreAsTheCallerLaidThemOut) {
  const AddressedBlocks three = blocks({3, 1, 2}, workers({7, 8, 9}));
  const Members view = members({7, 8, 9});
  EXPECT_EQ(three.counts_for(view).value(), (Counts{3, 1, 2}));
  EXPECT_EQ(packed(three, view), data_);
  EXPECT_EQ(three.as_they_lie(view).size(), 24U);
  EXPECT_EQ(blocks({}, workers({7, 8, 9})).counts_for(view).value(), (Counts{2, 2, 2}));
}

TEST_F(AddressedBlocksTest, LeaveOutWorkersThatHaveLeft) {
  const AddressedBlocks three = blocks({3, 1, 2}, workers({7, 8, 9}));
  const Members view = members({7, 9});
  EXPECT_EQ(three.counts_for(view).value(), (Counts{3, 2}));
  EXPECT_EQ(packed(three, view), (std::vector<std::int32_t>{10, 11, 12, 30, 31}));
  EXPECT_TRUE(three.as_they_lie(view).empty());
}

TEST_F(AddressedBlocksTest, FollowTheWorkersToOtherRanks) {
  const AddressedBlocks three = blocks({3, 1, 2}, workers({7, 8, 9}));
  EXPECT_EQ(packed(three, members({9, 8, 7})), (std::vector<std::int32_t>{30, 31, 20, 10, 11, 12}));
}

TEST_F(AddressedBlocksTest, LackOneForAWorkerThatHasJoinedSince) {
  const std::string text = fault(blocks({3, 3}, workers({7, 8})), members({7, 8, 9}));
  EXPECT_NE(text.find("rank 1 gave blocks for the members of generation 4, and none for rank 2"),
            std::string::npos)
      << text;
}

TEST_F(AddressedBlocksTest, SayHowTheyDoNotFit) {
  const Members view = members({7, 8});
  EXPECT_NE(fault(blocks({1, 2, 3}, workers({7, 8})), view)
                .find("rank 1 gave 3 blocks for the 2 members of generation 4"),
            std::string::npos);
  for (const std::vector<std::size_t>& counts :
       {std::vector<std::size_t>{3, 2}, {3, 4}, {~std::size_t{0}, 7}}) {
    EXPECT_NE(fault(blocks(counts, workers({7, 8})), view)
                  .find("do not add up to the 6 elements of its tensor"),
              std::string::npos);
  }
  EXPECT_NE(fault(blocks({}, workers({6, 7, 8, 9})), view)
                .find("gave 6 elements, which are no equal blocks for the 4 members"),
            std::string::npos);
  EXPECT_NE(fault(blocks({}, {}), view).find("no equal blocks for the 0 members"),
            std::string::npos);
}

}  // namespace
}  // namespace elastic::coordinator
