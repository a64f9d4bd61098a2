// A worker dies at a chosen moment of one operation: swept from its entry to after its return, and
// just when it has the result that others may not have yet.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/network_hosts.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

constexpr int kSteps = 12;
constexpr int kFatalStep = 4;
constexpr int kDeaths = kSlowness > 1 ? 3 : 6;

struct Kill {
  std::string kind;
  std::string transport;
  int np;
  std::size_t elements;
  int hosts = 0;  ///< on a network of their own, with as many workers on each; 0: no network

  friend std::ostream& operator<<(std::ostream& out, const Kill& kill) {
    out << kill.kind << "_" << kill.transport << "_" << kill.np << "_" << kill.elements;
    return kill.hosts == 0 ? out : out << "_on_" << kill.hosts << "_hosts";
  }
};

class KillPhases : public ::testing::TestWithParam<Kill> {
 protected:
  void SetUp() override {
    const int hosts = GetParam().hosts;
    if (hosts == 0) return;
    if (const std::string missing = network::HostNetwork::missing(); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
    network_.emplace(static_cast<std::size_t>(hosts) + 1);
  }
  std::vector<std::string> arguments() const {
    return {"kind=" + GetParam().kind, "steps=" + std::to_string(kSteps),
            "elements=" + std::to_string(GetParam().elements / kSlowness)};
  }
  FaultJobOptions options() {
    FaultJobOptions options;
    options.np = GetParam().np;
    options.transport = GetParam().transport;
    // Tensors of a step are to be separate operations, between which a member can die.
    if (GetParam().kind == "step_group") options.worker_environment = {"ELASTIC_BUCKET_BYTES=1"};
    if (network_) {
      options.hosts = &*network_;
      options.slots_per_host = GetParam().np / GetParam().hosts;
    }
    return options;
  }

  /// How long an operation takes undisturbed, in microseconds.
  std::int64_t duration() {
    FaultJob job(options());
    job.start_all(arguments());
    expect_end(job.others({}));
    std::vector<std::int64_t> times;
    for (FaultWorker* worker : job.others({})) {
      for (const Step& step : worker->log().steps()) times.push_back(step.microseconds);
    }
    if (times.empty()) return 0;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }

  /// One job in which `victim` dies at `moment`, given as Death has it.
  void one_death(int victim, const std::string& moment) {
    SCOPED_TRACE("worker " + std::to_string(victim) + " dies at " + moment);
    FaultJob job(options());
    for (int slot = 0; slot < GetParam().np; ++slot) {
      std::vector<std::string> with = arguments();
      if (slot == victim) with.push_back("die=" + moment);
      job.start(with);
    }
    EXPECT_EQ(job.worker(static_cast<std::size_t>(victim)).wait(kLong), 128 + SIGKILL);
    const auto survivors = job.others({static_cast<std::size_t>(victim)});
    expect_end(survivors);
    expect_same_steps(survivors);
    expect_counted(survivors.front()->log().steps(), victim);
    if (HasFailure()) ADD_FAILURE() << job.text();
  }

 private:
  /// From some step on only the survivors are counted. On a loaded machine the victim gets past the
  /// fatal step. It may have had the result of the step before as the only worker, but of no later
  /// one: no operation completes before all members have entered it.
  void expect_counted(const std::vector<Step>& steps, int victim) {
    EXPECT_EQ(steps.size(), std::size_t{kSteps});
    std::size_t most = static_cast<std::size_t>(GetParam().np);
    for (const Step& step : steps) {
      if (step.failed()) {
        EXPECT_TRUE(has_root() && victim == 0) << step.sums;
        EXPECT_GT(step.generation, 1U) << "the error does not carry the new view";
        ++failed_;
        continue;
      }
      EXPECT_LE(step.contributors, most) << "step " << step.index;
      EXPECT_GE(step.contributors, least_at(step.index)) << "step " << step.index;
      most = step.contributors;
      if (step.index != kFatalStep) continue;
      ++(step.contributors == least_at(0) ? counted_ : replayed_);
    }
  }
  std::size_t least_at(std::uint64_t step) const {
    return static_cast<std::size_t>(GetParam().np) - (step + 1 < kFatalStep ? 0 : 1);
  }

 protected:
  /// Whether rank 0 is the root of the call.
  bool has_root() const {
    const std::string& kind = GetParam().kind;
    return kind == "broadcast" || kind == "gather" || kind == "scatter" || kind == "reduce";
  }

  std::optional<NetworkHosts> network_;
  int counted_ = 0;
  int replayed_ = 0;
  int failed_ = 0;
};

class EveryPhase : public KillPhases {};

TEST_P(EveryPhase, SameCallRightSum) {
  const std::int64_t whole = duration();
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  const int deaths = runs(kDeaths);
  for (int i = 0; i < deaths && !HasFailure(); ++i) {
    const auto victim = has_root() && i % 2 == 0
                            ? 0
                            : static_cast<int>(random() % static_cast<unsigned>(GetParam().np));
    // Past the end by a fifth: what comes after the last step of the ring belongs to it.
    const std::int64_t moment = whole * 6 / 5 * i / deaths;
    one_death(victim, std::to_string(kFatalStep) + ":" + std::to_string(moment));
  }
  std::printf(
      "seed %llu, an operation takes %lld us: %d deaths, counted in %d, replayed in %d, "
      "an error in %d\n",
      static_cast<unsigned long long>(seed), static_cast<long long>(whole), deaths, counted_,
      replayed_, failed_);
}

INSTANTIATE_TEST_SUITE_P(
    Kill, EveryPhase,
    ::testing::Values(
        Kill{"allreduce", "shm", 3, 1000}, Kill{"allreduce", "tcp", 4, 1000},
        Kill{"allreduce", "shm", 4, 500000}, Kill{"allreduce", "tcp", 3, 500000},
        Kill{"allreduce", "auto", 4, 500000, 2}, Kill{"allocated", "shm", 3, 500000},
        Kill{"allocated", "shm", 4, 2000000}, Kill{"allocated", "tcp", 3, 500000},
        Kill{"named", "shm", 3, 200000}, Kill{"named", "tcp", 4, 200000},
        Kill{"broadcast", "shm", 4, 500000}, Kill{"broadcast", "tcp", 3, 500000},
        Kill{"allgather", "tcp", 4, 100000}, Kill{"allgather", "shm", 3, 100000},
        Kill{"reduce_scatter", "tcp", 3, 500000}, Kill{"reduce_scatter", "shm", 4, 500000},
        Kill{"alltoall", "shm", 4, 500000}, Kill{"alltoall", "tcp", 3, 500000},
        Kill{"gather", "shm", 3, 200000}, Kill{"gather", "tcp", 4, 200000},
        Kill{"scatter", "shm", 4, 500000}, Kill{"scatter", "tcp", 3, 500000},
        Kill{"reduce", "shm", 3, 500000}, Kill{"reduce", "tcp", 4, 500000},
        Kill{"reduce", "shm", 4, 500}, Kill{"scan", "tcp", 3, 500000}, Kill{"scan", "shm", 4, 5000},
        Kill{"queued", "shm", 3, 200000}, Kill{"queued", "tcp", 4, 2000},
        Kill{"named_kinds", "shm", 4, 20000}, Kill{"named_kinds", "tcp", 3, 200000},
        Kill{"alltoall", "shm", 4, 400}, Kill{"gather", "shm", 3, 100}, Kill{"scan", "shm", 3, 100},
        Kill{"allgather", "shm", 4, 100}, Kill{"broadcast", "shm", 3, 100},
        Kill{"broadcast", "tcp", 3, 100}, Kill{"scatter", "shm", 4, 30},
        Kill{"step_group", "shm", 4, 200000}, Kill{"step_group", "tcp", 3, 2000},
        Kill{"adasum", "shm", 3, 500000}, Kill{"adasum", "tcp", 4, 500000},
        Kill{"join", "shm", 4, 1000}, Kill{"join", "tcp", 3, 100000},
        Kill{"hierarchical_adasum", "shm", 3, 500000},
        Kill{"hierarchical_adasum", "auto", 4, 500000, 2}, Kill{"sparse", "shm", 3, 50000},
        Kill{"sparse", "tcp", 4, 1000}, Kill{"sparse_dense", "shm", 4, 50000},
        Kill{"sparse_dense", "tcp", 3, 1000}, Kill{"sparse_async", "shm", 3, 5000},
        Kill{"sparse_async", "tcp", 4, 1000}, Kill{"grouped_reduce_scatter", "shm", 4, 500000},
        Kill{"grouped_reduce_scatter", "tcp", 3, 5000},
        Kill{"grouped_reduce_scatter", "shm", 3, 100}, Kill{"grouped_allgather", "shm", 3, 100000},
        Kill{"grouped_allgather", "tcp", 4, 1000}),
    ::testing::PrintToStringParamName());

class WithTheResult : public KillPhases {};

/// The victim returns from the call and dies at once, or a little later.
TEST_P(WithTheResult, NoMemberDiverges) {
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (int i = 0; i < runs(kDeaths) && !HasFailure(); ++i) {
    const auto victim = static_cast<int>(random() % static_cast<unsigned>(GetParam().np));
    const auto delay = i % 2 == 0 ? 0 : random() % 200;
    one_death(victim, std::to_string(kFatalStep) + ":return+" + std::to_string(delay));
  }
  std::printf("counted in %d, replayed in %d\n", counted_, replayed_);
}

INSTANTIATE_TEST_SUITE_P(
    Kill, WithTheResult,
    ::testing::Values(Kill{"allreduce", "shm", 3, 1000}, Kill{"allreduce", "tcp", 4, 1000},
                      Kill{"allreduce", "shm", 4, 500000}, Kill{"allocated", "shm", 3, 500000},
                      Kill{"named", "tcp", 3, 1000}, Kill{"alltoall", "shm", 4, 50000},
                      Kill{"gather", "tcp", 3, 50000}, Kill{"scatter", "shm", 4, 50000},
                      Kill{"reduce", "tcp", 3, 50000}, Kill{"scan", "shm", 3, 50000},
                      Kill{"queued", "tcp", 3, 5000}, Kill{"named_kinds", "shm", 3, 5000},
                      Kill{"step_group", "tcp", 3, 20000}, Kill{"adasum", "shm", 3, 1000},
                      Kill{"join", "shm", 4, 1000},
                      Kill{"hierarchical_adasum", "auto", 4, 50000, 2},
                      Kill{"sparse", "shm", 3, 5000}, Kill{"sparse_dense", "tcp", 4, 5000},
                      Kill{"grouped_reduce_scatter", "shm", 3, 50000},
                      Kill{"grouped_allgather", "shm", 4, 5000}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace elastic::testing
