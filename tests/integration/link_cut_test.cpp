#include "benchmarks/network/link_cut.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/network/host_network.hpp"

namespace elastic::network {
namespace {

using ::testing::HasSubstr;

class LinkCutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = HostNetwork::missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    Status status = HostNetwork::make(2, network_);
    ASSERT_TRUE(status.ok()) << status.message();
    status = LinkCut::open(network_.space(0), HostNetwork::address(1), cut_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  HostNetwork network_;
  LinkCut cut_;
};

TEST_F(LinkCutTest, IsConfirmed) {
  cut_.strike();
  const Status confirmed = cut_.confirm();
  EXPECT_TRUE(confirmed.ok()) << confirmed.message();
}

TEST_F(LinkCutTest, ThatTheKernelRefusesIsAnError) {
  const Status removed = command_on_host(network_.space(0), "ip link delete eth0");
  ASSERT_TRUE(removed.ok()) << removed.message();
  cut_.strike();
  EXPECT_THAT(cut_.confirm().message(), HasSubstr("did not cut the link: No such device"));
}

TEST_F(LinkCutTest, ThatWasNotCutIsNotConfirmed) {
  EXPECT_EQ(cut_.confirm().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace elastic::network
