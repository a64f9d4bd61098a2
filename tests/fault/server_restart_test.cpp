// The rendezvous server dies and is started again: while all is well, in the middle of a view
// change, with a worker; its journal whole, torn or lost.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::microseconds;

enum class Journal { kWhole, kTorn, kLost };

class ServerRestart : public ::testing::TestWithParam<Journal> {
 protected:
  /// A restarted server waits only briefly for members that do not come back.
  static FaultJobOptions options(int np) {
    return {.np = np, .server_options = {"--return-window-ms", std::to_string(1500 * kSlowness)}};
  }
  static std::vector<std::string> arguments(const FaultJob& job) {
    return {"kind=train", "until=" + job.end_file(), "pause_us=500"};
  }
  static void damage(const std::filesystem::path& journal) {
    if (GetParam() == Journal::kLost) std::filesystem::remove(journal);
    if (GetParam() != Journal::kTorn) return;
    // Cuts the last record, as a crash in the middle of an append does.
    std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 10);
  }
  /// Steps go on after the restart, joiners are admitted, and no generation is used twice.
  static void expect_recovery(FaultJob& job, const std::vector<std::size_t>& dead) {
    const auto survivors = job.others(dead);
    ASSERT_TRUE(eventually(kLong, [&] {
      return survivors.front()->log().steps().back().contributors == survivors.size();
    })) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(survivors, 20)) << job.text();
    const std::uint64_t before = generation(*survivors.front());
    FaultWorker& joiner = job.start(arguments(job));
    ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(job.others(dead), 20)) << job.text();
    EXPECT_GT(generation(joiner), before);
    expect_one_view_per_generation(job.others({}));
    finish(job, job.others(dead));
  }
};

TEST_P(ServerRestart, ResumesWhatRuns) {
  FaultJob job(options(3));
  job.start_all(arguments(job));
  const auto all = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(all, 20)) << job.text();
  job.kill_server();
  ASSERT_TRUE(FaultJob::await_steps(all, 50)) << job.text();
  damage(job.journal());
  job.restart_server();
  ASSERT_TRUE(FaultJob::await_steps(all, 50)) << job.text();
  expect_recovery(job, {});
  EXPECT_THAT(job.text(), ::testing::HasSubstr("warning: the rendezvous server is back"));
}

TEST_P(ServerRestart, ResumesAViewChange) {
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (int i = 0; i < runs(2) && !HasFailure(); ++i) {
    FaultJob job(options(4));
    job.start_all(arguments(job));
    ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
    const std::size_t victim = random() % 4;
    job.worker(victim).kill();
    // The moment is what is swept; there is no event to wait for.
    std::this_thread::sleep_for(microseconds(random() % 3000));
    job.kill_server();
    damage(job.journal());
    job.restart_server();
    ASSERT_NO_FATAL_FAILURE(expect_recovery(job, {victim}));
  }
}

TEST_P(ServerRestart, AndAWorkerThatDiedWithTheServer) {
  FaultJob job(options(4));
  job.start_all(arguments(job));
  const auto survivors = job.others({1});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  job.kill_server();
  job.worker(1).kill();
  // The survivors cannot go on alone, and must not: that is all that can be seen of it.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(generation(*survivors.front()), 1U);
  damage(job.journal());
  job.restart_server();
  expect_recovery(job, {1});
}

INSTANTIATE_TEST_SUITE_P(With, ServerRestart,
                         ::testing::Values(Journal::kWhole, Journal::kTorn, Journal::kLost),
                         [](const auto& tested) {
                           return std::string(tested.param == Journal::kWhole  ? "its_journal"
                                              : tested.param == Journal::kTorn ? "a_torn_journal"
                                                                               : "no_journal");
                         });

}  // namespace
}  // namespace elastic::testing
