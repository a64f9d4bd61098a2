#include <gmock/gmock.h>

#include "benchmarks/collective/bandwidth.hpp"
#include "benchmarks/report/byte_size.hpp"
#include "benchmarks/report/statistics.hpp"

namespace elastic::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ByteSize, TakesSuffixesInEitherCase) {
  EXPECT_EQ(parse_byte_size("8").value(), 8U);
  EXPECT_EQ(parse_byte_size("64K").value(), 65536U);
  EXPECT_EQ(parse_byte_size("64k").value(), 65536U);
  EXPECT_EQ(parse_byte_size("3M").value(), 3U << 20);
  EXPECT_EQ(parse_byte_size("2G").value(), std::size_t{2} << 30);
}

TEST(ByteSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", "0", "0K", "K", "-1", "1.5M", "1KB", "1T", " 1",
                           "99999999999999999999", "18446744073709551615K"}) {
    const auto size = parse_byte_size(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(size.status().message(), HasSubstr("\"" + std::string(text) + "\""));
  }
}

TEST(SizeRange, GoesByFactorOrIncrement) {
  EXPECT_THAT(sizes_of({.min = 8, .max = 64, .factor = 2}), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(sizes_of({.min = 8, .max = 100, .factor = 3}), ElementsAre(8, 24, 72));
  EXPECT_THAT(sizes_of({.min = 8, .max = 40, .increment = 16}), ElementsAre(8, 24, 40));
  EXPECT_THAT(sizes_of({.min = 8, .max = 8}), ElementsAre(8));
  EXPECT_THAT(sizes_of({.min = 9, .max = 8}), IsEmpty());
}

TEST(SizeRange, EndsAtTheGreatestSize) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT(sizes_of({.min = kMost / 2, .max = kMost, .factor = 3}), ElementsAre(kMost / 2));
  EXPECT_THAT(sizes_of({.min = kMost - 1, .max = kMost, .increment = 2}), ElementsAre(kMost - 1));
}

TEST(Statistics, PercentileIsASample) {
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile(hundred, 0.5), 50);
  EXPECT_EQ(percentile(hundred, 0), 1);
  EXPECT_EQ(percentile(hundred, 1), 100);
  EXPECT_EQ(percentile({7}, 0.99), 7);
  EXPECT_EQ(percentile({1, 2, 3}, 0.99), 3);
}

TEST(Statistics, SummaryDoesNotNeedOrder) {
  const Summary odd = summarize({3, 1, 2});
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.p99, 3);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(summarize({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(summarize({}).max, 0);
}

TEST(Bandwidth, IsThatOfNcclTests) {
  // 1 GB in 1 s.
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1'000'000'000, 1e6), 1.0);
  EXPECT_EQ(algorithm_bandwidth(8, 0), 0);
}

}  // namespace
}  // namespace elastic::bench
