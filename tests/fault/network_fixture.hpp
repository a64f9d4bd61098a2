#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/fault_job.hpp"
#include "fault/network_hosts.hpp"

namespace elastic::testing {

/// A job whose workers are on hosts of their own, and its server too.
class NetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = network::HostNetwork::missing(); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
  }

  /// Makes a job with room for `spare` joiners.
  FaultJob& make_job(FaultJobOptions options, std::size_t spare = 0) {
    hosts_ = std::make_unique<NetworkHosts>(static_cast<std::size_t>(options.np) + 1 + spare);
    options.hosts = hosts_.get();
    job_ = std::make_unique<FaultJob>(options);
    return *job_;
  }
  static std::size_t host_of(std::size_t slot) { return slot + 1; }
  static constexpr std::size_t kServerHost = 0;

  std::unique_ptr<NetworkHosts> hosts_;
  std::unique_ptr<FaultJob> job_;
};

}  // namespace elastic::testing
