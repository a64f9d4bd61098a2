#include "collectives/backend/nccl/nccl_settings.hpp"

#include <gtest/gtest.h>

#include "base/config/options.hpp"
#include "base/config/variables.hpp"

namespace elastic::collectives::nccl {
namespace {

TEST(NcclSettings, ComeFromOptionsAndFromTheVariablesOfNccl) {
  Options options;
  options.nccl_library = "/opt/libnccl.so";
  options.nccl_meanwhile = NcclMeanwhile::kWait;
  options.nccl_register = NcclRegister::kNever;
  options.nccl_shrink = NcclShrink::kOff;
  options.nccl_overlap = NcclOverlap::kOff;
  options.nccl_min_ctas = 2;
  options.nccl_max_ctas = 16;
  options.nccl_cta_policy = NcclCtaPolicy::kEfficiency;
  options.nccl_net = "IB";
  const NcclSettings settings =
      parse_settings(settings_of("nccl", options, {{"NCCL_HOSTID", "rank3"}, {"OTHER", "1"}}));
  EXPECT_EQ(settings.library, "/opt/libnccl.so");
  EXPECT_TRUE(settings.waits);
  EXPECT_EQ(settings.registers, NcclRegister::kNever);
  EXPECT_EQ(settings.shrinks, NcclShrink::kOff);
  EXPECT_FALSE(settings.overlaps);
  EXPECT_EQ(settings.tuning.min_ctas, 2);
  EXPECT_EQ(settings.tuning.max_ctas, 16);
  EXPECT_EQ(settings.tuning.policy, NcclCtaPolicy::kEfficiency);
  EXPECT_EQ(settings.tuning.net, "IB");
  EXPECT_EQ(settings.host, "rank3");
}

TEST(NcclSettings, HaveAMinimumOfCtasThatIsNotAboveTheMaximum) {
  Options options;
  options.nccl_min_ctas = 8;
  EXPECT_TRUE(resolve(options, {}).ok());
  options.nccl_max_ctas = 4;
  const Result<Options> resolved = resolve(options, {});
  ASSERT_FALSE(resolved.ok());
  EXPECT_EQ(resolved.status().message(),
            "ELASTIC_NCCL_MIN_CTAS (Options::nccl_min_ctas) is 8, more than ELASTIC_NCCL_MAX_CTAS "
            "(Options::nccl_max_ctas), which is 4: lower the one or raise the other");
  EXPECT_TRUE(resolve(options, {{"ELASTIC_NCCL_MAX_CTAS", "8"}}).ok());
}

TEST(NcclSettings, AreTheDefaultsWithoutVariables) {
  for (const BackendSettings& given : {BackendSettings(), settings_of("nccl", Options(), {})}) {
    const NcclSettings settings = parse_settings(given);
    EXPECT_EQ(settings.library, "");
    EXPECT_FALSE(settings.waits);
    EXPECT_EQ(settings.registers, NcclRegister::kAuto);
    EXPECT_EQ(settings.shrinks, NcclShrink::kAuto);
    EXPECT_TRUE(settings.overlaps);
    EXPECT_EQ(settings.tuning.min_ctas, 0);
    EXPECT_EQ(settings.tuning.max_ctas, 0);
    EXPECT_EQ(settings.tuning.policy, NcclCtaPolicy::kDefault);
    EXPECT_EQ(settings.tuning.net, "");
    EXPECT_EQ(settings.host, "");
  }
}

TEST(NcclSettings, HaveNoHostWhereRanksMayShareADevice) {
  const auto host = [](const char* shared) {
    return parse_settings({{"NCCL_MULTI_RANK_GPU_ENABLE", shared}, {"NCCL_HOSTID", "a"}}).host;
  };
  EXPECT_FALSE(host("1").has_value());
  EXPECT_FALSE(host("").has_value());
  EXPECT_EQ(host("0"), "a");
}

TEST(NcclSettings, AreNotThoseOfOtherBackends) {
  EXPECT_TRUE(settings_of("gloo", Options(), {{"NCCL_HOSTID", "a"}}).empty());
}

}  // namespace
}  // namespace elastic::collectives::nccl
