// A joiner behind a slow line receives the state while the members go on.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

class SlowJoiner : public NetworkTest {
 protected:
  static constexpr std::size_t kBytesPerSecond = 1U << 20;
  static constexpr std::size_t kStateBytes = 3U << 20;  // three seconds

  /// Time of `count` steps, from one end to the other.
  static microseconds time_of_steps(const std::vector<FaultWorker*>& members, std::size_t count) {
    const auto begin = steady_clock::now();
    EXPECT_TRUE(FaultJob::await_steps(members, count));
    return duration_cast<microseconds>(steady_clock::now() - begin);
  }
};

TEST_F(SlowJoiner, CostsMembersFivePercentAtMost) {
  constexpr std::size_t kSteps = 100;
  FaultJob& job = make_job({.np = 3, .evict_after = kUsualEviction}, 1);
  hosts_->limit_download(host_of(3), kBytesPerSecond);
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=10000",
                                           "state_bytes=" + std::to_string(kStateBytes)};
  job.start_all(arguments);
  const auto members = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  const microseconds before = time_of_steps(members, kSteps);
  FaultWorker& joiner = job.start(arguments);
  ASSERT_TRUE(FaultJob::await_line(joiner, "joined")) << job.text();
  const microseconds meanwhile = time_of_steps(members, kSteps);
  EXPECT_EQ(joiner.log().count("entered"), 0U) << "the transfer was over too soon";
  std::printf("%zu steps take %lld us alone, %lld us next to the transfer\n", kSteps,
              static_cast<long long>(before.count()), static_cast<long long>(meanwhile.count()));
  EXPECT_LE(meanwhile, before * 105 / 100);
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
