// Many real workers on one machine, started as users start them: one is killed while they train,
// and another one joins.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <signal.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "fault/effort.hpp"
#include "fault/programs/flags.hpp"
#include "fault/worker_log.hpp"
#include "integration/launched_job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kWorkers = kSlowness > 1 ? 24 : 64;
constexpr int kVictim = 7;
/// Between two looks at what the workers have written, so that they have the processors.
constexpr milliseconds kBetweenLooks{20};
/// There were 3 GiB with every worker linked with every other one, and 579 MiB with links that had
/// all of their pages at once.
constexpr std::size_t kMostSharedMib = 512;

/// MiB of shared memory that a process has, where pages of several processes are divided among
/// them.
double shared_mib(const std::string& pid) {
  std::ifstream rollup("/proc/" + pid + "/smaps_rollup");
  for (std::string word; rollup >> word;) {
    double kib = 0;
    if (word == "Pss_Shmem:" && rollup >> kib) return kib / 1024;
  }
  return 0;
}

/// A job of large_job_worker, and what its workers have told.
class LargeJob {
 public:
  explicit LargeJob(const std::string& transport) {
    const std::string np = std::to_string(kWorkers);
    job_.start({"-np", np, "--max-np", np, "--max-restarts", "0", "--output-dir", path("out"),
                LARGE_JOB_WORKER, path("finish")},
               {"ELASTIC_TRANSPORT=" + transport});
  }

  /// Waits until each of so many workers has made two more steps of just as many. False if the job
  /// ends before, or takes very long.
  bool await_steps_of(std::size_t workers) {
    refresh();
    const std::uint64_t seen = latest_step();
    const auto makes_steps = [&](const auto& entry) {
      return std::ranges::count_if(entry.second.steps(), [&](const Step& step) {
               return step.index > seen && step.contributors == workers;
             }) >= 2;
    };
    const auto all_do = [&] {
      refresh();
      return static_cast<std::size_t>(std::ranges::count_if(logs_, makes_steps)) == workers;
    };
    bool done = false;
    eventually(kLong, [&] {
      done = all_do();
      return done || job_.launcher().wait(kBetweenLooks).has_value();
    });
    return done;
  }

  /// Lets the training end; the launcher's exit status, -1 if it hangs.
  int finish() {
    std::ofstream(path("finish")) << "now\n";
    const int status = job_.launcher().wait(kLong).value_or(-1);
    refresh();
    return status;
  }

  double shared_mib() const {
    double sum = 0;
    for (const auto& [slot, log] : logs_) sum += testing::shared_mib(log.told("pid "));
    return sum;
  }
  LaunchedJob& job() { return job_; }
  /// By slot, as read last.
  const std::map<int, WorkerLog>& logs() const { return logs_; }

  /// The output of the launcher, and of the workers that have told of no end.
  std::string text() const {
    std::string result = job_.output();
    for (const auto& [slot, log] : logs_) {
      if (log.count("end") == 0) result += "worker " + std::to_string(slot) + ":\n" + log.text();
    }
    return result;
  }

 private:
  std::string path(const std::string& name) const { return (job_.folder() / name).string(); }
  /// The joiner has the slot of the dead worker, and writes to the same file.
  void refresh() {
    for (int slot = 0; slot < static_cast<int>(kWorkers); ++slot) {
      const std::string file = path("out/worker-" + std::to_string(slot) + ".out");
      if (!logs_.contains(slot) && std::filesystem::exists(file)) logs_.emplace(slot, file);
    }
    for (auto& [slot, log] : logs_) log.refresh();
  }
  std::uint64_t latest_step() const {
    std::uint64_t latest = 0;
    for (const auto& [slot, log] : logs_) {
      if (!log.steps().empty()) latest = std::max(latest, log.steps().back().index);
    }
    return latest;
  }

  LaunchedJob job_;
  std::map<int, WorkerLog> logs_;
};

/// The step with which the worker that was last in a slot began.
std::uint64_t first_step(const WorkerLog& log) {
  const std::string start = "entered ";
  std::uint64_t step = 0;
  for (const std::string& line : log.lines()) {
    if (line.starts_with(start)) step = std::stoull(line.substr(start.size()));
  }
  return step;
}

/// Each worker makes every step from its first one on once, and all have the same outcome of it.
/// \returns the slots counted in the steps, without repetitions. The dead worker's steps are left
/// out: it may have been the only one to complete its last one.
std::vector<std::string> agreed_sums(const LargeJob& job) {
  std::map<std::uint64_t, std::string> agreed;
  for (const auto& [slot, log] : job.logs()) {
    SCOPED_TRACE("slot " + std::to_string(slot));
    EXPECT_EQ(log.count("entered"), slot == kVictim ? 2U : 1U);
    EXPECT_EQ(log.count("end"), 1U);
    std::uint64_t expected = first_step(log);
    for (const Step& step : log.steps()) {
      if (step.index < first_step(log)) continue;
      EXPECT_EQ(step.index, expected++) << "a step is missing, or was made again";
      const std::string outcome =
          step.sums + " " + std::to_string(step.generation) + " " + step.state;
      EXPECT_EQ(agreed.try_emplace(step.index, outcome).first->second, outcome)
          << "step " << step.index;
    }
  }
  std::vector<std::string> sums;
  for (const auto& [index, outcome] : agreed) {
    const std::string counted = outcome.substr(0, outcome.find(' '));
    if (sums.empty() || sums.back() != counted) sums.push_back(counted);
  }
  return sums;
}

class LargeJobTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeJobTest, LosesAWorkerWithinACallAndAdmitsAJoiner) {
  LargeJob job(GetParam());
  ASSERT_TRUE(job.await_steps_of(kWorkers)) << job.text();
  const double shared = job.shared_mib();
  std::printf("%zu workers have %.0f MiB of shared memory\n", kWorkers, shared);
  EXPECT_LT(shared, kMostSharedMib);

  ::kill(std::stoi(job.logs().at(kVictim).told("pid ")), SIGKILL);
  ASSERT_TRUE(job.await_steps_of(kWorkers - 1)) << job.text();
  ASSERT_TRUE(job.job().control({"add", "1"})) << job.text();
  ASSERT_TRUE(job.await_steps_of(kWorkers)) << job.text();
  EXPECT_EQ(job.finish(), 0);

  const std::string all = std::string(kWorkers, '1') + std::string(fault::kFlags - kWorkers, '0');
  std::string survivors = all;
  survivors[kVictim] = '0';
  EXPECT_THAT(agreed_sums(job), ElementsAre(all, survivors, all));
  if (HasFailure()) ADD_FAILURE() << job.text();
}

/// 33 workers over TCP; `limits` are the lines of a shell that each executes before its program.
class FewDescriptorsTest : public ::testing::Test {
 protected:
  int run(const std::string& limits) {
    std::ofstream(job_.folder() / "finish") << "now\n";
    job_.start(
        {"-np", "33", "--max-np", "33", "--max-restarts", "0", "bash", "-c",
         limits + "; exec \"$0\" \"$1\"", LARGE_JOB_WORKER, (job_.folder() / "finish").string()},
        {"ELASTIC_TRANSPORT=tcp"});
    return job_.launcher().wait(kLong).value_or(-1);
  }

  LaunchedJob job_;
};

/// Enough to be a member, but not for rank 0, which has to give all others the state.
TEST_F(FewDescriptorsTest, OneThatHasTooFewLeavesAndSaysSo) {
  EXPECT_EQ(run("if [ $ELASTIC_SLOT = 0 ]; then ulimit -n 50; fi"), 0) << job_.output();
  EXPECT_THAT(job_.output(), HasSubstr("worker 0 exited with code 3: this process may have 50 "
                                       "descriptors (ulimit -n)"));
  EXPECT_THAT(job_.output(), HasSubstr("began with 33 workers and ended with 32: "));
}

TEST_F(FewDescriptorsTest, WhereAllHaveTooFewTheJobFails) {
  EXPECT_EQ(run("ulimit -n 30"), 1) << job_.output();
  EXPECT_THAT(job_.output(), HasSubstr("a view of 33 members needs 2"));
  EXPECT_THAT(job_.output(), Not(HasSubstr("cannot be linked with")));
}

TEST_F(FewDescriptorsTest, WhereAllHaveTooFewToGiveOutTheStateTheJobFails) {
  EXPECT_EQ(run("ulimit -n 50"), 1) << job_.output();
  EXPECT_THAT(job_.output(), HasSubstr("none is left for a link in a view of 33 members"));
  EXPECT_THAT(job_.output(), Not(HasSubstr("cannot be linked with")));
}

INSTANTIATE_TEST_SUITE_P(Over, LargeJobTest, ::testing::Values("shm", "tcp"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace elastic::testing
