#include "runtime/state_difference.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace elastic::runtime {
namespace {

const Layout kLayout = {{"weights", "f32", 10}, {"object", "object", 0}};

struct Told {
  explicit Told(const std::vector<std::vector<std::uint64_t>>& summaries) {
    for (const auto& summary : summaries) {
      all.insert(all.end(), summary.begin(), summary.end());
      lengths.push_back(summary.size());
    }
  }
  std::vector<std::uint64_t> all;
  std::vector<std::size_t> lengths;
};

std::string compared(const std::vector<std::vector<std::uint64_t>>& summaries) {
  const Told told(summaries);
  return state_difference(told.all, told.lengths, kLayout);
}

StateRefusals refusals(const std::vector<std::vector<std::uint64_t>>& summaries) {
  const Told told(summaries);
  return state_refusals(told.all, told.lengths);
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

TEST(StateDifference, LeavesOutRanksThatRefusedTheState) {
  const auto refusal = refusal_summary(Status(Code::kRefused, "no tokenizer"), true);
  EXPECT_EQ(compared({refusal, summary_of(10, 8, 5), summary_of(10, 8, 5)}), "");
  EXPECT_EQ(compared({refusal, summary_of(10, 8, 5), summary_of(10, 9, 5)}),
            "rank 2 differs from rank 1 in state entry 'object'");
}

TEST(StateRefusals, NameTheFirstRankAndItsReason) {
  const auto refusal = [](const std::string& why, bool final) {
    return refusal_summary(Status(Code::kRefused, why), final);
  };
  EXPECT_EQ(refusals({summary_of(10, 8, 5), summary_of(10, 8, 5)}).ranks, 0);
  const StateRefusals one = refusals({summary_of(10, 8, 5), refusal("no tokenizer", true)});
  EXPECT_EQ(one.ranks, 1);
  EXPECT_TRUE(one.final);
  EXPECT_EQ(one.text, "rank 1 could not take the job's state over: no tokenizer");
  const StateRefusals two =
      refusals({summary_of(10, 8, 5), refusal("damaged", false), refusal("12345678", false)});
  EXPECT_FALSE(two.final);
  EXPECT_EQ(two.text,
            "rank 1 could not take the job's state over: damaged; nor could 1 more of the ranks");
  EXPECT_EQ(refusals({refusal(std::string(5000, 'x'), true)}).text.substr(0, 60),
            "rank 0 could not take the job's state over: xxxxxxxxxxxxxxxx");
}

}  // namespace
}  // namespace elastic::runtime
