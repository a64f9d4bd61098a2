// Collectives of tensors on devices, by real processes under elasticrun, on a stand-in for the CUDA
// driver.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/device_world.hpp"
#include "integration/ended.hpp"
#include "integration/job.hpp"
#include "integration/one_kill.hpp"
#include "integration/timeline_files.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct World {
  std::string name;
  int ranks;
  std::vector<std::string> environment;
};

class DeviceWorldTest : public ::testing::TestWithParam<World> {};

TEST_P(DeviceWorldTest, ResultsAreThoseOfTheHost) {
  std::vector<std::string> environment = GetParam().environment;
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  device_world(GetParam().ranks, environment);
}

/// Under sanitizers one alone, and the most that have the most to do: the others differ in what is
/// between the ranks, and in what they say.
std::vector<World> worlds() {
  std::vector<World> all{{"alone", 1, {}},
                         {"three_over_shm", 3, {"ELASTIC_TRANSPORT=shm"}},
                         {"three_with_kernels", 3, {"CUDA_STAND_IN_KERNELS=1"}}};
  if (kSlowness > 1) return all;
  all.push_back({"two_on_one_device", 2, {"CUDA_STAND_IN_DEVICES=1"}});
  all.push_back({"two_with_warnings", 2, {"ELASTIC_STALL_WARNING_MS=1"}});
  all.push_back({"two_over_tcp", 2, {"ELASTIC_TRANSPORT=tcp"}});
#ifdef GLOO_IS_BUILT
  all.push_back({"two_by_gloo", 2, {"ELASTIC_BACKEND=gloo"}});
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, DeviceWorldTest, ::testing::ValuesIn(worlds()),
                         [](const auto& param) { return param.param.name; });

#ifdef NCCL_STAND_IN
std::vector<std::string> by_nccl(const std::string& meanwhile) {
  return {"ELASTIC_BACKEND=nccl", "ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN,
          "ELASTIC_NCCL_MEANWHILE=" + meanwhile,
          "NCCL_MULTI_RANK_GPU_ENABLE=1"};  // the stand-in for the driver has two
}

/// The log line of the library after the first of such calls by NCCL.
std::string by_nccl_from_now_on(const std::string& calls) {
  return calls + " of tensors on devices go by NCCL from now on";
}

void world_by_nccl(int ranks, const std::string& meanwhile) {
  std::vector<std::string> environment = by_nccl(meanwhile);
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  environment.emplace_back("ELASTIC_LOG_LEVEL=info");
  const std::string said = device_world(ranks, environment, /*exact=*/true);
  for (const char* const calls : {"allreduces", "broadcasts", "allgathers", "reduce_scatters",
                                  "grouped_allgathers", "grouped_reduce_scatters"}) {
    EXPECT_THAT(said, HasSubstr(by_nccl_from_now_on(calls)));
  }
}

TEST(NcclDeviceJob, ResultsAreThoseOfTheHost) {
  world_by_nccl(3, "wait");
}
TEST(NcclDeviceJob, ResultsAreThoseOfTheHostWhenItComesLate) {
  world_by_nccl(kSlowness > 1 ? 2 : 3, "host");
}

/// The one that died is replaced: the second view has a communicator without it, the third with the
/// joiner, whose state came while that was made.
TEST(NcclDeviceJob, GoesOnByNcclWithAJoiner) {
  std::vector<std::string> environment = by_nccl("wait");
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  environment.emplace_back("ELASTIC_LOG_LEVEL=info");
  const std::string said = device_training(environment);
  for (const char* generation : {"1", "2", "3"}) {
    EXPECT_THAT(said, HasSubstr("nccl, generation " + std::string(generation) + ": " +
                                by_nccl_from_now_on("allreduces")));
  }
}

/// As above, where one does not die but is frozen: the aborts of the others wait until elasticrun
/// has killed it.
TEST(NcclDeviceJob, AWorkerThatIsFrozenDoesNotTakeOthersWithIt) {
  std::vector<std::string> environment = by_nccl("wait");
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  environment.emplace_back("ELASTIC_LOG_LEVEL=info");
  environment.emplace_back("NCCL_STAND_IN_ABORT_WAITS=1");
  const std::string said = device_training(environment, {}, SIGSTOP);
  EXPECT_THAT(said,
              ContainsRegex("elasticrun: killing worker 1 .process [0-9]+.: the job has given "
                            "it up"));
  EXPECT_THAT(said, HasSubstr("(restart 1 of 1)"));
  EXPECT_THAT(said, Not(HasSubstr("ncclCommAbort has not returned")));
  EXPECT_THAT(said, HasSubstr("nccl, generation 3: " + by_nccl_from_now_on("allreduces")));
}

TEST(NcclDeviceJob, ShrinksTheCommunicatorWithoutAWorkerThatIsRemoved) {
  std::vector<std::string> environment = by_nccl("wait");
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  environment.emplace_back("ELASTIC_LOG_LEVEL=info");
  device_shrinking(environment);
}

/// The allreduces in the timeline of rank 0 that are said to have been in device memory.
int in_device_memory(const std::string& kind, const std::vector<std::string>& backend) {
  const ScratchFolder folder;
  std::vector<std::string> environment = backend;
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  environment.emplace_back("ELASTIC_TIMELINE=" + (folder.path() / "trace.json").string());
  const Ended ended = run({ELASTICRUN, "-np", "2", "--max-restarts", "0", DIGIT_STREAM, kind, "20",
                           "20000", "1", folder.path().string()},
                          environment);
  EXPECT_EQ(ended.status, 0) << ended.output;
  int found = 0;
  for (const auto& slice : slices(read_timeline(timelines_in(folder.path()).at(0)), "allreduce")) {
    const auto& args = slice.at("args");
    if (!args.contains("memory")) continue;
    EXPECT_EQ(args.at("memory"), "device");
    ++found;
  }
  return found;
}

TEST(NcclDeviceJob, TheTimelineTellsCallsInDeviceMemoryFromOthers) {
  EXPECT_GE(in_device_memory("device_blocking", by_nccl("wait")), 20);
  EXPECT_GE(in_device_memory("device_named", by_nccl("wait")), 20);
  EXPECT_EQ(in_device_memory("device_blocking", {"ELASTIC_BACKEND=native"}), 0);
  EXPECT_EQ(in_device_memory("device_named", {"ELASTIC_BACKEND=native"}), 0);
}

TEST(NcclDeviceJob, SaysWhichRanksAreOnOneDevice) {
  const ScratchFolder folder;
  const Ended ended =
      run({ELASTICRUN, "-np", "2", "--max-restarts", "0", DIGIT_STREAM, "device_blocking", "20",
           "20000", "1", folder.path().string()},
          {"LD_LIBRARY_PATH=" CUDA_STAND_IN, "CUDA_STAND_IN_DEVICES=1", "ELASTIC_BACKEND=nccl",
           "ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN, "ELASTIC_NCCL_MEANWHILE=wait"});
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("ranks 0 and 1 have their tensors on one CUDA device"));
}

/// Counts, which do not depend on how fast the machine is. The stand-in for NCCL makes no thread
/// for a launch, as NCCL does.
TEST(NcclDeviceJob, CallsMakeNoThreadsAndDoNotSleep) {
  if (kSlowness > 1) GTEST_SKIP() << "sanitizers have pthread_create and nanosleep themselves";
  const ScratchFolder folder;
  std::vector<std::string> environment = by_nccl("wait");
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  const Ended ended =
      run({ELASTICRUN, "-np", "2", "--max-restarts", "0", DEVICE_COSTS, folder.path().string()},
          environment);
  EXPECT_EQ(ended.status, 0) << ended.output;
}

/// More workers than are linked with each other from the start (Options::all_linked).
TEST(NcclDeviceJob, WorkersWithoutALinkWithEachOther) {
  if (kSlowness > 1) GTEST_SKIP() << "too many processes";
  const ScratchFolder folder;
  std::vector<std::string> environment = by_nccl("wait");
  environment.insert(environment.end(), {"LD_LIBRARY_PATH=" CUDA_STAND_IN, "ELASTIC_TRANSPORT=tcp",
                                         "ELASTIC_LOG_LEVEL=info"});
  const Ended ended = run({ELASTICRUN, "-np", "18", "--max-restarts", "0", DIGIT_STREAM,
                           "device_blocking", "5", "2000", "1", folder.path().string()},
                          environment);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(by_nccl_from_now_on("allreduces")));
}

TEST(NcclDeviceJob, SaysThatItsNcclHasNoCtaPolicy) {
  const ScratchFolder folder;
  std::vector<std::string> environment = by_nccl("wait");
  environment.insert(environment.end(),
                     {"LD_LIBRARY_PATH=" CUDA_STAND_IN, "NCCL_STAND_IN_VERSION=22605",
                      "ELASTIC_NCCL_CTA_POLICY=efficiency", "ELASTIC_NCCL_MAX_CTAS=4"});
  const Ended ended = run({ELASTICRUN, "-np", "1", "--max-restarts", "0", DIGIT_STREAM,
                           "device_blocking", "20", "20000", "1", folder.path().string()},
                          environment);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("ELASTIC_NCCL_CTA_POLICY has no effect: it needs NCCL 2.27 "
                                      "or later, and " NCCL_STAND_IN " is NCCL 2.26.5"));
}

TEST(NcclDeviceJob, Alone) {
  world_by_nccl(1, "wait");
}
#endif

TEST(DeviceJob, OnTheHostAloneNeedsNoDriver) {
  const ScratchFolder folder;
  const Ended ended = run({ELASTICRUN, "-np", "2", "--max-restarts", "0", DIGIT_STREAM, "mixed",
                           "20", "20000", "1", folder.path().string()},
                          {"LD_LIBRARY_PATH=" CUDA_STAND_IN});
  EXPECT_EQ(ended.status, 0) << ended.output;
}

/// One worker cannot bring a result to its device. The others have it, and go on.
void one_failure(const std::string& mode) {
  const ScratchFolder folder;
  const Ended ended =
      run({ELASTICRUN, "-np", "3", "--min-np", "1", "--max-restarts", "0", "/bin/sh", "-c",
           "test $RANK = 1 && export CUDA_STAND_IN_FAIL=cuMemcpyHtoDAsync_v2:20; exec " DIGIT_STREAM
           " device_" +
               mode + " 40 20000 1 " + folder.path().string()},
          {"LD_LIBRARY_PATH=" CUDA_STAND_IN});
  EXPECT_THAT(ended.output, HasSubstr("this worker has left the job, as it cannot bring the result "
                                      "of a collective to its tensors"));
  EXPECT_THAT(ended.output, HasSubstr("illegal memory access"));
  const std::string log = read_file(folder.path() / "0");
  EXPECT_THAT(log, HasSubstr("111\n")) << ended.output;
  EXPECT_THAT(log, HasSubstr("\n101\n")) << ended.output;
  EXPECT_THAT(log, HasSubstr("end")) << ended.output;
  EXPECT_EQ(read_file(folder.path() / "2"), log);
}

TEST(DeviceJob, GoesOnWithoutAWorkerWhoseDeviceFails) {
  one_failure("blocking");
}

TEST(DeviceJob, GoesOnWithoutAWorkerWhoseDeviceFailsInABucket) {
  one_failure("named");
}

TEST(DeviceJob, GoesOnWithoutAWorkerWhoseDeviceFailsInAnotherCollective) {
  one_failure("moves");
}

#ifdef NCCL_STAND_IN
/// The result of its first broadcast is on its device already.
TEST(NcclDeviceJob, GoesOnWithoutAWorkerWhoseDeviceFailsInTheEnd) {
  const ScratchFolder folder;
  std::vector<std::string> environment = by_nccl("wait");
  environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  const Ended ended =
      run({ELASTICRUN, "-np", "3", "--min-np", "1", "--max-restarts", "0", "/bin/sh", "-c",
           "test $RANK = 1 && export CUDA_STAND_IN_FAIL=cuMemcpyDtoDAsync_v2:1; exec " DIGIT_STREAM
           " device_moves 40 20000 1 " +
               folder.path().string()},
          environment);
  EXPECT_THAT(ended.output, HasSubstr("this worker has left the job, as it cannot bring the result "
                                      "of a collective to its tensors"));
  EXPECT_THAT(ended.output, HasSubstr("illegal memory access"));
  const std::string log = read_file(folder.path() / "0");
  EXPECT_THAT(log, HasSubstr("\n101\n")) << ended.output;
  EXPECT_THAT(log, HasSubstr("end")) << ended.output;
  EXPECT_EQ(read_file(folder.path() / "2"), log);
}
#endif

/// No member waits for a device before it leaves the old view.
TEST(DeviceJob, ChangesItsViewWhileADeviceIsAtWork) {
  const ScratchFolder folder;
  const Ended ended = run({ELASTICRUN, "-np", "3", "--min-np", "1", "--max-restarts", "0",
                           DIGIT_STREAM, "device_held", "5", "1000", "1", folder.path().string()},
                          {"LD_LIBRARY_PATH=" CUDA_STAND_IN});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(read_file(folder.path() / "0"), "11\n11\n11\n11\n11\n11\n11\nend\n") << ended.output;
  EXPECT_EQ(read_file(folder.path() / "1"), read_file(folder.path() / "0"));
}

class DeviceKillTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(DeviceKillTest, SurvivorsAgreeOnEverySum) {
  several_kills(GetParam(), 2);
}

Scenario on_device(const std::string& mode, const std::string& transport) {
  Scenario scenario{mode, transport};
  scenario.on_device = true;
  scenario.driver = CUDA_STAND_IN;
  return scenario;
}

/// Under sanitizers each kind of call once; two kinds are mixed by NCCL, below.
std::vector<Scenario> streams() {
  std::vector<Scenario> all{on_device("blocking", "auto"), on_device("named", "shm"),
                            on_device("moves", "tcp"), on_device("groups", "shm")};
  if (kSlowness == 1)
    all.insert(all.end(), {on_device("mixed", "tcp"), on_device("moves", "auto")});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Streams, DeviceKillTest, ::testing::ValuesIn(streams()),
                         [](const auto& param) {
                           return param.param.mode + "_" + param.param.transport;
                         });

Scenario compressed(Scenario scenario) {
  scenario.compressed = true;
  return scenario;
}

/// The stand-in for the driver performs the kernels.
Scenario with_kernels(Scenario scenario) {
  scenario.environment.emplace_back("CUDA_STAND_IN_KERNELS=1");
  return scenario;
}

/// On one of the ranks no kernels can be loaded: its tensors go through host memory.
Scenario with_kernels_on_others(Scenario scenario) {
  scenario = with_kernels(std::move(scenario));
  scenario.prefix = {"/bin/sh", "-c", "test $RANK = 1 && unset CUDA_STAND_IN_KERNELS; exec \"$@\"",
                     "sh"};
  return scenario;
}

/// By name: through host memory, by kernels, mixed.
std::vector<std::pair<std::string, Scenario>> compressed_streams() {
  const auto stream = [](const std::string& kind, const std::string& transport) {
    return compressed(on_device(kind, transport));
  };
  std::vector<std::pair<std::string, Scenario>> all{
      {"f16_by_host", stream("f16:256", "auto")},
      {"bf16_by_kernels", with_kernels(stream("bf16", "tcp"))},
      {"int8_by_kernels", with_kernels(stream("int8:100", "shm"))},
      {"top_k_on_some", with_kernels_on_others(stream("top_k:0.02:0.9:50", "auto"))}};
  if (kSlowness == 1) {
    all.insert(all.end(), {{"top_k_by_host", stream("top_k:0.05", "tcp")},
                           {"f16_on_some", with_kernels_on_others(stream("f16", "tcp"))},
                           {"int8_on_some", with_kernels_on_others(stream("int8", "auto"))}});
  }
  return all;
}

class CompressedDeviceKillTest : public ::testing::TestWithParam<std::pair<std::string, Scenario>> {
};

TEST_P(CompressedDeviceKillTest, SurvivorsHaveTheContributorsSum) {
  several_kills(GetParam().second, 2);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressedDeviceKillTest, ::testing::ValuesIn(compressed_streams()),
                         [](const auto& param) { return param.param.first; });

#ifdef NCCL_STAND_IN
Scenario on_device_by_nccl(const std::string& mode, const std::string& meanwhile) {
  Scenario scenario = on_device(mode, "auto");
  scenario.backend = "nccl";
  scenario.environment = by_nccl(meanwhile);
  scenario.environment.emplace_back("ELASTIC_LOG_LEVEL=info");
  scenario.says = by_nccl_from_now_on(mode == "moves" ? "broadcasts" : "allreduces");
  return scenario;
}

#ifdef KERNELS_ARE_BUILT
/// NCCL adds up the halves that kernels have made.
Scenario compressed_by_nccl() {
  return with_kernels(compressed(on_device_by_nccl("bf16", "wait")));
}

INSTANTIATE_TEST_SUITE_P(CompressedByNccl, DeviceKillTest, ::testing::Values(compressed_by_nccl()),
                         [](const auto& param) { return param.param.mode; });
#endif

/// Buckets of one or two tensors, of which the next one is with NCCL before the present one ends.
Scenario in_small_buckets() {
  Scenario scenario = on_device_by_nccl("named", "wait");
  scenario.environment.emplace_back("ELASTIC_BUCKET_BYTES=4096");
  scenario.says = "buckets of tensors on devices begin early from now on";
  return scenario;
}

INSTANTIATE_TEST_SUITE_P(InSmallBuckets, DeviceKillTest, ::testing::Values(in_small_buckets()),
                         [](const auto& param) { return param.param.mode; });

/// The memory that the stand-in for NCCL shares between processes outlives each of them: after a
/// death it is silent, as a connection that is merely slow.
std::vector<Scenario> streams_by_nccl() {
  std::vector<Scenario> all{on_device_by_nccl("named", "wait"), on_device_by_nccl("moves", "wait"),
                            on_device_by_nccl("mixed", "host")};
  if (kSlowness == 1) all.push_back(on_device_by_nccl("blocking", "wait"));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Nccl, DeviceKillTest, ::testing::ValuesIn(streams_by_nccl()),
                         [](const auto& param) { return param.param.mode; });
#endif

}  // namespace
}  // namespace elastic::testing
