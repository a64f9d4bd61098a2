// The configuration with which NCCL makes communicators.
#include "collectives/backend/nccl/communicator/communicator_config.hpp"

#include <cstddef>
#include <nccl.h>

#include <gtest/gtest.h>

#include "nccl/communicator_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

static_assert(offsetof(CommunicatorConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(CommunicatorConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(CommunicatorConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(CommunicatorConfig, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(CommunicatorConfig, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(CommunicatorConfig::kUndefined == NCCL_CONFIG_UNDEF_INT);
#if NCCL_VERSION_CODE >= 22700
static_assert(offsetof(CommunicatorConfig, cta_policy) == offsetof(ncclConfig_t, CTAPolicy));
static_assert(offsetof(CommunicatorConfig, shrink_share) == offsetof(ncclConfig_t, shrinkShare));
static_assert(offsetof(CommunicatorConfig, nvls_ctas) == offsetof(ncclConfig_t, nvlsCTAs));
static_assert(NCCL_CTA_POLICY_EFFICIENCY == 1 && NCCL_CTA_POLICY_ZERO == 2);
static_assert(NCCL_SHRINK_ABORT == 1);
#endif

TEST(CommunicatorConfigTest, IsThatOfNcclItselfByDefault) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const CommunicatorConfig ours = config_for({}, 22809);
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.size, sizeof ours);
  EXPECT_EQ(ours.version, 22700U) << "the fields of later versions are not there";
  EXPECT_EQ(ours.blocking, 0);
  EXPECT_EQ(ours.min_ctas, theirs.minCTAs);
  EXPECT_EQ(ours.max_ctas, theirs.maxCTAs);
  EXPECT_EQ(ours.net_name, nullptr);
  EXPECT_EQ(ours.cta_policy, CommunicatorConfig::kUndefined);
  EXPECT_EQ(config_for({}, 21800).version, 21800U);
}

TEST(CommunicatorConfigTest, HasAMaximumWhereThereIsAMinimum) {
  const CommunicatorConfig at_least = config_for({.min_ctas = 4}, 22809);
  EXPECT_EQ(at_least.min_ctas, 4);
  EXPECT_GE(at_least.max_ctas, 4) << "NCCL refuses a minimum alone";
  const CommunicatorConfig at_most = config_for({.max_ctas = 4}, 22809);
  EXPECT_EQ(at_most.min_ctas, CommunicatorConfig::kUndefined);
  EXPECT_EQ(at_most.max_ctas, 4);
}

class CommunicatorTuningTest : public CommunicatorFixture {};

TEST_F(CommunicatorTuningTest, ReachesNccl) {
  tuning_ = {.min_ctas = 2, .max_ctas = 8, .policy = NcclCtaPolicy::kZero, .net = "Socket"};
  prepare(2, {});
  all_ready();
  const NcclStandIn::Config got = nccl_->config();
  EXPECT_EQ(got.min_ctas, 2);
  EXPECT_EQ(got.max_ctas, 8);
  EXPECT_EQ(got.cta_policy, 2);
  EXPECT_EQ(got.net, "Socket");
  abort_all();
  all_ended();
}

}  // namespace
}  // namespace elastic::collectives::nccl
