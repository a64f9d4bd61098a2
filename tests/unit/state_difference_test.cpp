#include "runtime/state_difference.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace elastic::runtime {
namespace {

const Layout kLayout = {{"weights", "f32", 10}, {"object", "object", 0}};

std::string compared(const std::vector<std::vector<std::uint64_t>>& summaries) {
  std::vector<std::uint64_t> all;
  std::vector<std::size_t> lengths;
  for (const auto& summary : summaries) {
    all.insert(all.end(), summary.begin(), summary.end());
    lengths.push_back(summary.size());
  }
  return state_difference(all, lengths, kLayout);
}

std::vector<std::uint64_t> summary_of(std::uint64_t weights, std::uint64_t object_hash,
                                      std::uint64_t commits) {
  return state_summary({{"weights", "f32", weights}, kLayout[1]}, {7, object_hash}, commits);
}

TEST(StateDifference, NamesTheEntryAndTheSizesOfBothRanks) {
  EXPECT_EQ(compared({summary_of(10, 8, 5), summary_of(10, 8, 5), summary_of(11, 8, 5)}),
            "rank 2 differs from rank 0 in state entry 'weights': rank 0 has 10 elements, rank 2 "
            "has 11 elements; add the same entries, of the same sizes, on all workers");
}

TEST(StateDifference, NamesTheEntryWhoseValueDiffers) {
  EXPECT_EQ(compared({summary_of(10, 8, 5), summary_of(10, 9, 5)}),
            "rank 1 differs from rank 0 in state entry 'object'");
}

TEST(StateDifference, TellsWhoHasMoreEntries) {
  auto more = state_summary({kLayout[0], kLayout[1], {"more", "f32", 1}}, {7, 8, 9}, 5);
  EXPECT_EQ(compared({summary_of(10, 8, 5), more}),
            "rank 0 has a state of 2 entries, rank 1 one of 3 entries; add the same entries, of "
            "the same sizes, on all workers");
}

TEST(StateDifference, TellsOfCommitsAndOfNothing) {
  EXPECT_EQ(compared({summary_of(10, 8, 5), summary_of(10, 8, 6)}),
            "rank 1 differs from rank 0 in the number of commits");
  EXPECT_EQ(compared({summary_of(10, 8, 5), summary_of(10, 8, 5)}), "");
}

}  // namespace
}  // namespace elastic::runtime
