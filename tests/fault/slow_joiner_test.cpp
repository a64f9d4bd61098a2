// A joiner behind a slow line, for which the members would wait, is kept waiting itself.
#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

constexpr std::size_t kSlow = 1U << 20;    // bytes per second
constexpr std::size_t kFast = 400U << 20;  // no limit, in effect

class SlowJoiner : public NetworkTest {
 protected:
  static std::vector<std::string> limit(int stall_ms) {
    return {"--max-join-stall-ms", std::to_string(stall_ms)};
  }
  std::vector<std::string> arguments(std::size_t state_bytes) const {
    return {"kind=train", "until=" + job_->end_file(), "pause_us=10000",
            "state_bytes=" + std::to_string(state_bytes)};
  }
  bool said(const std::string& text) const { return job_->text().find(text) != std::string::npos; }
  /// How often the server has told a joiner to wait: once after each of its measurements.
  std::size_t measurements() const {
    static const std::string note = "waits for a faster line";
    const std::string log = read_file(job_->folder() / "server.0");
    std::size_t count = 0;
    for (auto at = log.find(note); at != std::string::npos; at = log.find(note, at + 1)) ++count;
    return count;
  }
};

TEST_F(SlowJoiner, IsKeptWaitingAndDoesNotStopTheMembers) {
  FaultJob& job = make_job({.np = 3, .server_options = limit(2000)}, 1);
  hosts_->limit_download(host_of(3), kSlow);
  job.start_all(arguments(20U << 20));
  const auto members = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();

  FaultWorker& joiner = job.start(arguments(20U << 20));
  ASSERT_TRUE(eventually(kLong, [&] { return said("elastic warning: waits for a faster line"); }))
      << job.text();
  EXPECT_TRUE(said("the members wait 2.0 s at most (--max-join-stall-ms)")) << job.text();
  // The joiner measures its line again, and the members go on after that.
  ASSERT_TRUE(eventually(kLong, [&] { return measurements() >= 2; })) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  for (const Step& step : members[0]->log().steps()) {
    // Had they waited for the state, it had been for 20 s.
    EXPECT_LT(step.microseconds, 10'000'000) << "step " << step.index << " stood still";
  }
  EXPECT_EQ(joiner.log().count("entered"), 0U) << job.text();
  EXPECT_EQ(generation(*members[0]), 1U) << "the members were stopped";

  hosts_->limit_download(host_of(3), kFast);
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(members[0]->log().steps().back().contributors, 4U);
  finish(job, job.others({}));
}

TEST_F(SlowJoiner, IsAdmittedWithAStateThatIsSmallEnough) {
  FaultJob& job = make_job({.np = 3, .server_options = limit(20000)}, 1);
  hosts_->limit_download(host_of(3), kSlow);
  job.start_all(arguments(1U << 20));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  ASSERT_TRUE(FaultJob::await_line(job.start(arguments(1U << 20)), "entered")) << job.text();
  EXPECT_FALSE(said("waits for a faster line")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  finish(job, job.others({}));
}

/// They wait in any case.
TEST_F(SlowJoiner, IsTakenByMembersThatAreTooFew) {
  FaultJob& job = make_job({.np = 2, .min_np = 2, .server_options = limit(500)}, 1);
  hosts_->limit_download(host_of(2), kSlow);
  job.start_all(arguments(4U << 20));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  FaultWorker& joiner = job.start(arguments(4U << 20));
  ASSERT_TRUE(eventually(kLong, [&] { return said("waits for a faster line"); })) << job.text();
  job.worker(1).kill();
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({1}), 10)) << job.text();
  finish(job, job.others({1}));
}

}  // namespace
}  // namespace elastic::testing
