#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "elastic/global_batch.hpp"
#include "training/philox.hpp"

namespace elastic {
namespace {

using Block = std::array<std::uint32_t, 4>;

/// The known answers that come with Random123, its authors' implementation.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(training::philox({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(training::philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      training::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<std::uint32_t> first_of(const RandomStream::Key& key) {
  RandomStream stream(key);
  std::vector<std::uint32_t> words;
  for (int n = 0; n < 9; ++n) words.push_back(stream());
  return words;
}

TEST(RandomStream, DependsOnEveryPartOfItsKeyAndOnNothingElse) {
  const RandomStream::Key key{1, 2, 3, 4};
  EXPECT_EQ(first_of(key), first_of(key));
  const std::set<std::vector<std::uint32_t>> different{first_of(key),
                                                       first_of({2, 2, 3, 4}),
                                                       first_of({1, 3, 3, 4}),
                                                       first_of({1, 2, 4, 4}),
                                                       first_of({1, 2, 3, 5}),
                                                       first_of({2, 1, 3, 4}),
                                                       first_of({1, 2, std::uint64_t{3} << 32, 4})};
  EXPECT_EQ(different.size(), 7U);
}

TEST(RandomStream, IsUniform) {
  RandomStream stream({.seed = 5});
  std::array<int, 10> seen{};
  double sum = 0;
  constexpr int kDraws = 100000;
  for (int n = 0; n < kDraws; ++n) {
    const double value = stream.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    ++seen[stream.below(seen.size())];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  for (const int count : seen) EXPECT_NEAR(count, kDraws / 10, 500);  // five standard deviations
  EXPECT_EQ(stream.below(1), 0U);
  EXPECT_THROW(stream.below(0), Error);
}

}  // namespace
}  // namespace elastic
