// A joiner dies while it receives the state, or a member does that sends it.
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kStateBytes = (24U << 20) / kSlowness;

class Joiner : public ::testing::TestWithParam<std::string> {
 protected:
  Joiner() : job_({.np = 3, .transport = GetParam()}) {
    job_.start_all(arguments());
    EXPECT_TRUE(FaultJob::await_steps(job_.others({}), 10)) << job_.text();
  }
  std::vector<std::string> arguments() const {
    return {"kind=train", "until=" + job_.end_file(), "pause_us=1000",
            "state_bytes=" + std::to_string(kStateBytes)};
  }

  /// The time from the saving of the members' state until the joiner has entered.
  microseconds transfer_time() {
    const std::size_t saved = job_.worker(0).log().count("saves");
    FaultWorker& joiner = job_.start(arguments());
    EXPECT_TRUE(FaultJob::await_line(job_.worker(0), "saves", saved + 1));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(FaultJob::await_line(joiner, "entered")) << job_.text();
    return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - begin);
  }

  FaultJob job_;
};

TEST_P(Joiner, DiesAnywhereInTheTransferAndMembersAreUnaffected) {
  const microseconds whole = transfer_time();
  const auto members = job_.others({});
  const int deaths = runs(4, kMostJoiners);
  for (int i = 0; i < deaths; ++i) {
    const std::size_t saved = job_.worker(0).log().count("saves");
    FaultWorker& joiner = job_.start(arguments());
    ASSERT_TRUE(FaultJob::await_line(job_.worker(0), "saves", saved + 1)) << job_.text();
    // The moment is what is swept; there is no event to wait for.
    std::this_thread::sleep_for(whole * i / deaths);
    joiner.kill();
    ASSERT_TRUE(FaultJob::await_steps(members, 10)) << job_.text();
  }
  std::printf("a transfer takes %lld us\n", static_cast<long long>(whole.count()));
  EXPECT_EQ(members.front()->log().steps().back().contributors, 4U);
  finish(job_, members);
}

TEST_P(Joiner, DiesWhenItHasTheState) {
  const auto members = job_.others({});
  std::vector<std::string> dying = arguments();
  dying.push_back("die_loading");
  EXPECT_EQ(job_.start(dying).wait(kLong), 128 + SIGKILL);
  ASSERT_TRUE(FaultJob::await_steps(members, 10)) << job_.text();
  EXPECT_EQ(members.front()->log().steps().back().contributors, 3U);
  finish(job_, members);
}

TEST_P(Joiner, GetsTheStateFromTheOthersWhenADonorDies) {
  const microseconds whole = transfer_time();
  job_.worker(3).kill();
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  std::vector<std::size_t> dead{3};
  for (int i = 0; i < 2; ++i) {  // the first donor, which is also the first rank, and the next
    ASSERT_TRUE(FaultJob::await_steps(job_.others(dead), 10)) << job_.text();
    const std::size_t saved = job_.worker(2).log().count("saves");
    FaultWorker& joiner = job_.start(arguments());
    ASSERT_TRUE(FaultJob::await_line(job_.worker(2), "saves", saved + 1)) << job_.text();
    // The moment is what is swept; there is no event to wait for.
    std::this_thread::sleep_for(microseconds(random() % static_cast<std::uint64_t>(whole.count())));
    const auto donor = static_cast<std::size_t>(i);
    job_.worker(donor).kill();
    dead.push_back(donor);
    ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job_.text();
  }
  std::printf("seed %llu, a transfer takes %lld us\n", static_cast<unsigned long long>(seed),
              static_cast<long long>(whole.count()));
  ASSERT_TRUE(FaultJob::await_steps(job_.others(dead), 10)) << job_.text();
  EXPECT_EQ(job_.worker(2).log().steps().back().contributors, 3U);
  finish(job_, job_.others(dead));
}

INSTANTIATE_TEST_SUITE_P(Over, Joiner, ::testing::Values("shm", "tcp"),
                         [](const auto& tested) { return tested.param; });

/// The line is so slow that the deaths are in the middle of the transfer.
class JoinerBehindASlowLine : public NetworkTest {
 protected:
  static constexpr std::size_t kBytes = 4U << 20;
  static constexpr std::size_t kBytesPerSecond = 2U << 20;
  static constexpr milliseconds kMiddle{150};

  /// Three members; one joiner that is receiving the state.
  void start_transfer() {
    FaultJob& job = make_job({.np = 3}, 2);
    for (const std::size_t slot : {3U, 4U}) {
      hosts_->limit_download(host_of(slot), kBytesPerSecond);
    }
    job.start_all(arguments());
    ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
    const std::size_t saved = job.worker(2).log().count("saves");
    job.start(arguments());
    ASSERT_TRUE(FaultJob::await_line(job.worker(2), "saves", saved + 1)) << job.text();
    // No event shows the progress of a transfer; the next line fails if it is over already.
    std::this_thread::sleep_for(kMiddle);
    EXPECT_EQ(job.worker(3).log().count("loads"), 0U) << "the transfer is over too soon";
  }
  std::vector<std::string> arguments() const {
    return {"kind=train", "until=" + job_->end_file(), "pause_us=1000",
            "state_bytes=" + std::to_string(kBytes)};
  }
};

TEST_F(JoinerBehindASlowLine, DiesInTheMiddle) {
  ASSERT_NO_FATAL_FAILURE(start_transfer());
  job_->worker(3).kill();
  ASSERT_TRUE(FaultJob::await_steps(job_->others({3}), 10)) << job_->text();
  finish(*job_, job_->others({3}));
}

TEST_F(JoinerBehindASlowLine, LosesADonorInTheMiddle) {
  ASSERT_NO_FATAL_FAILURE(start_transfer());
  job_->worker(0).kill();
  ASSERT_TRUE(FaultJob::await_line(job_->worker(3), "entered")) << job_->text();
  ASSERT_TRUE(FaultJob::await_steps(job_->others({0}), 10)) << job_->text();
  EXPECT_EQ(job_->worker(2).log().steps().back().contributors, 3U);
  finish(*job_, job_->others({0}));
}

}  // namespace
}  // namespace elastic::testing
