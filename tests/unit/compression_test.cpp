#include "elastic/compression.hpp"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config/options.hpp"

namespace elastic {
namespace {

using ::testing::HasSubstr;

TEST(CompressionText, NamesKindsAndParameters) {
  using Kind = CompressionKind;
  EXPECT_EQ(find_compression("none"), Compression{});
  EXPECT_EQ(find_compression("f16"), (Compression{.kind = Kind::kF16}));
  EXPECT_EQ(find_compression("f16:1024"), (Compression{.kind = Kind::kF16, .scale = 1024}));
  EXPECT_EQ(find_compression("bf16"), (Compression{.kind = Kind::kBF16}));
  EXPECT_EQ(find_compression("int8"), (Compression{.kind = Kind::kInt8, .block = 256}));
  EXPECT_EQ(find_compression("int8:64"), (Compression{.kind = Kind::kInt8, .block = 64}));
  EXPECT_EQ(find_compression("two_bit:0.25"),
            (Compression{.kind = Kind::kTwoBit, .threshold = 0.25F}));
  EXPECT_EQ(
      find_compression("top_k:0.001:0.9:400"),
      (Compression{.kind = Kind::kTopK, .ratio = 0.001, .momentum = 0.9F, .warm_up_steps = 400}));
  EXPECT_EQ(find_compression("top_k:1"), (Compression{.kind = Kind::kTopK, .ratio = 1}));
}

TEST(CompressionText, OfNoKindOrOutOfRangeIsNone) {
  for (const char* text : {"",
                           "int",
                           "INT8",
                           "none:1",
                           "bf16:2",
                           "f16:3",
                           "f16:0",
                           "f16:-2",
                           "f16:1e30",
                           "int8:0",
                           "int8:65537",
                           "int8:1:2",
                           "int8:",
                           "two_bit:0",
                           "two_bit:-1",
                           "two_bit:nan",
                           "two_bit:inf",
                           "top_k:0",
                           "top_k:1.5",
                           "top_k:nan",
                           "top_k:0.1:1",
                           "top_k:0.1:-0.1",
                           "top_k:0.1:0.9:-1",
                           "top_k:0.1:0.9:1:1",
                           "top_k:0.1x"}) {
    EXPECT_FALSE(find_compression(text).has_value()) << text;
  }
}

TEST(CompressionText, IsCheckedInOptionsAndEnvironment) {
  Options options;
  options.compression = "two_bit:0";
  const auto by_code = resolve(options, {});
  ASSERT_FALSE(by_code.ok());
  EXPECT_THAT(by_code.status().message(), HasSubstr("Options::compression is 'two_bit:0'"));
  EXPECT_THAT(by_code.status().message(), HasSubstr("two_bit:THRESHOLD (above 0)"));

  const auto by_name = resolve({}, {{"ELASTIC_COMPRESSION", "gzip"}});
  ASSERT_FALSE(by_name.ok());
  EXPECT_THAT(by_name.status().message(), HasSubstr("ELASTIC_COMPRESSION is 'gzip'"));
  for (const char* valid : {"none", "f16", "bf16", "int8", "two_bit", "top_k"}) {
    EXPECT_THAT(by_name.status().message(), HasSubstr(valid));
  }
  const auto right = resolve({}, {{"ELASTIC_COMPRESSION", "top_k:0.05"}});
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right.value().compression, "top_k:0.05");
}

TEST(CompressionParameters, OutOfRangeAreNamedWithTheRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  using Kind = CompressionKind;
  EXPECT_THAT(invalid_parameter({.kind = Kind::kTopK, .ratio = 2}),
              HasSubstr("ratio is 2; give a share above 0 and at most 1"));
  EXPECT_THAT(invalid_parameter({.kind = Kind::kTopK, .ratio = nan}), HasSubstr("ratio is nan"));
  EXPECT_THAT(invalid_parameter({.kind = Kind::kTopK, .momentum = nan}), HasSubstr("momentum"));
  EXPECT_THAT(invalid_parameter({.kind = Kind::kTwoBit, .threshold = -1}),
              HasSubstr("threshold is -1; give a finite number above 0"));
  EXPECT_THAT(invalid_parameter({.kind = Kind::kInt8, .block = 0}), HasSubstr("block is 0"));
  EXPECT_THAT(invalid_parameter({.kind = Kind::kF16, .scale = nan}), HasSubstr("scale is nan"));
  EXPECT_EQ(invalid_parameter({.kind = Kind::kInt8, .threshold = -1}), "");
}

}  // namespace
}  // namespace elastic
