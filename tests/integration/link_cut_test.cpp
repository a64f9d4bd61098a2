#include "benchmarks/link_cut.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/host_network.hpp"
#include "integration/job.hpp"

namespace elastic::bench {
namespace {

using ::testing::HasSubstr;

class LinkCutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, for network namespaces";
    Status status = HostNetwork::make(2, folder_.path(), network_);
    ASSERT_TRUE(status.ok()) << status.message();
    status = LinkCut::open(network_.spaces()[0], HostNetwork::address(1), cut_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  testing::ScratchFolder folder_;
  HostNetwork network_;
  LinkCut cut_;
};

TEST_F(LinkCutTest, IsConfirmed) {
  cut_.strike();
  const Status confirmed = cut_.confirm();
  EXPECT_TRUE(confirmed.ok()) << confirmed.message();
}

TEST_F(LinkCutTest, ThatTheKernelRefusesIsAnError) {
  const auto remove_device = [&]() -> Status {
    testing::Job ip({"ip", "link", "delete", "eth0"}, folder_.path() / "ip");
    return ip.wait(std::chrono::seconds(20)) == 0 ? Status() : Status(Code::kInternal, ip.output());
  };
  const Status removed = run_on_host(network_.spaces()[0], remove_device);
  ASSERT_TRUE(removed.ok()) << removed.message();
  cut_.strike();
  EXPECT_THAT(cut_.confirm().message(), HasSubstr("did not cut the link: No such device"));
}

TEST_F(LinkCutTest, ThatNobodyHasStruckIsNotConfirmed) {
  EXPECT_EQ(cut_.confirm().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace elastic::bench
