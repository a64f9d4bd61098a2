#pragma once

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "integration/digits_job.hpp"

namespace elastic::testing {

/// A job of three workers, of which one kills itself, and one that joins: all come to the end with
/// the same weights, and have used every sample once in an epoch.
inline void expect_equal_weights_through_a_death_and_a_join(DigitsJob& job) {
  ASSERT_TRUE(job.wait_until_self_destructed()) << job.output();
  ASSERT_TRUE(job.control({"add", "1"})) << job.output();
  ASSERT_TRUE(job.wait_until_stepped(3, 3)) << job.output();
  ASSERT_EQ(job.finish(), 0) << job.output();
  std::set<std::string> hashes;
  for (const auto& report : job.reports()) {
    EXPECT_EQ(report["samples_missed"], 0) << report;
    EXPECT_EQ(report["samples_used_twice"], 0) << report;
    EXPECT_GT(report["test_accuracy"], 0.8) << report;
    hashes.insert(report["parameter_hash"].get<std::string>());
  }
  EXPECT_EQ(job.reports().size(), 3U) << job.output();
  EXPECT_EQ(hashes.size(), 1U) << job.output();
}

}  // namespace elastic::testing
