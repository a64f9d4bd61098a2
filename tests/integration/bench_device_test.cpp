// elastic-bench with tensors on CUDA devices, on stand-ins for CUDA's driver and for NCCL.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A run of elastic-bench to its end, where there are as many devices.
class DeviceBench {
 public:
  explicit DeviceBench(std::vector<std::string> arguments,
                       std::vector<std::string> environment = {}) {
    const std::string file = (folder_.path() / "report.json").string();
    arguments.insert(arguments.begin(), ELASTIC_BENCH);
    arguments.insert(arguments.end(), {"--device", "cuda", "--json", file});
    environment.emplace_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
    Job job(arguments, folder_.path() / "output", environment);
    code_ = job.wait(std::chrono::seconds(100)).value_or(-1);
    output_ = job.output();
    if (code_ == 0) rows_ = json::parse(read_file(file)).at("results");
  }

  int code() const { return code_; }
  const std::string& output() const { return output_; }
  /// The results of a run without errors.
  const json& rows() const { return rows_; }

 private:
  ScratchFolder folder_;
  int code_ = 0;
  std::string output_;
  json rows_ = json::array();
};

void expect_right(const DeviceBench& bench, std::size_t rows) {
  ASSERT_EQ(bench.code(), 0) << bench.output();
  EXPECT_EQ(bench.rows().size(), rows);
  for (const json& row : bench.rows()) {
    EXPECT_EQ(row["memory"], "cuda") << row;
    EXPECT_EQ(row["wrong"], 0) << row;
  }
}

TEST(DeviceBench, AllreduceIsRightAndReported) {
  const DeviceBench bench({"allreduce", "--np", "2", "-b", "8", "-e", "1M", "-f", "64", "-n", "2"});
  expect_right(bench, 6);  // 8 B, 512 B, 32 KiB, each out of place and in place
  EXPECT_THAT(bench.output(), HasSubstr("in the memory of CUDA devices: 2 CUDA devices\n"));
}

TEST(DeviceBench, OtherCollectivesAreRight) {
  for (const char* operation : {"all_gather", "reduce_scatter", "broadcast"}) {
    SCOPED_TRACE(operation);
    expect_right(DeviceBench({operation, "--np", "2", "-b", "1K", "-e", "1K", "-n", "2"}), 1);
  }
}

TEST(DeviceBench, RanksMayShareADevice) {
  const DeviceBench bench(
      {"allreduce", "--np", "3", "-b", "1K", "-e", "1K", "-d", "bfloat16", "-o", "avg"},
      {"CUDA_STAND_IN_DEVICES=1"});
  expect_right(bench, 2);
  EXPECT_THAT(bench.output(), HasSubstr("3 ranks on 1 CUDA device\n"));
}

TEST(DeviceBench, FusionIsRightAndReported) {
  const DeviceBench bench({"fusion", "--np", "2", "-n", "1", "-w", "0", "--turns", "1"});
  expect_right(bench, 3);
  EXPECT_THAT(bench.output(), HasSubstr("161 tensors"));
}

/// Each call's sums are checked by its workers.
TEST(DeviceBench, RecoveryIsMeasured) {
  const DeviceBench bench({"recovery", "--np", "3", "--bytes", "64K", "--runs", "1"});
  ASSERT_EQ(bench.code(), 0) << bench.output();
  EXPECT_EQ(bench.rows().at(0).at("memory"), "cuda");
  EXPECT_GT(bench.rows().at(0).at("p50_ms"), 0);
}

TEST(DeviceBench, SaysWhyThereIsNoDevice) {
  const std::vector<std::vector<std::string>> all{
      {"allreduce", "--np", "2"}, {"fusion", "--np", "2"}, {"recovery", "--runs", "1"}};
  for (const auto& arguments : all) {
    const DeviceBench none(arguments, {"CUDA_STAND_IN_DEVICES=0"});
    EXPECT_EQ(none.code(), 1);
    EXPECT_EQ(none.output(),
              "elastic-bench: --device cuda: there is a CUDA driver, but no device\n");
    const DeviceBench broken(arguments, {"CUDA_STAND_IN_ERROR=803"});
    EXPECT_EQ(broken.code(), 1);
    EXPECT_THAT(broken.output(),
                HasSubstr("--device cuda: the CUDA driver does not work: cuInit: forward"));
  }
}

TEST(DeviceBench, EndsWhereADeviceFails) {
  const DeviceBench bench({"allreduce", "--np", "1"},
                          {"CUDA_STAND_IN_FAIL=cuMemcpyHtoDAsync_v2:1"});
  EXPECT_EQ(bench.code(), 1);
  EXPECT_THAT(bench.output(), HasSubstr("CUDA: cuMemcpyHtoDAsync: an illegal memory access"));
}

#ifdef NCCL_PEER_IS_BUILT

TEST(DeviceBench, RecoveryOfRanksThatShareADeviceIsMeasuredByNccl) {
  const DeviceBench bench({"recovery", "--np", "3", "--bytes", "64K", "--runs", "1"},
                          {"CUDA_STAND_IN_DEVICES=1", "ELASTIC_BACKEND=nccl",
                           "ELASTIC_NCCL_MEANWHILE=wait", "ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN});
  ASSERT_EQ(bench.code(), 0) << bench.output();
  EXPECT_EQ(bench.rows().at(0).at("backend"), "nccl");
  EXPECT_GT(bench.rows().at(0).at("p50_ms"), 0);
}

TEST(DeviceBench, ComparesWithNcclCalledDirectly) {
  const DeviceBench bench({"allreduce", "--np", "1", "-b", "4K", "-e", "4K", "-n", "4", "--backend",
                           "native,nccl:direct"},
                          {"ELASTIC_NCCL_LIBRARY=" ONE_RANK_NCCL});
  expect_right(bench, 4);
  EXPECT_EQ(bench.rows().at(2).at("backend"), "nccl:direct");
  EXPECT_THAT(bench.output(), HasSubstr("# nccl:direct: NCCL 2.28.9 in " ONE_RANK_NCCL));
}

TEST(DeviceBench, ComparesOtherCollectivesWithNcclCalledDirectly) {
  for (const char* operation : {"all_gather", "reduce_scatter", "broadcast"}) {
    SCOPED_TRACE(operation);
    const DeviceBench bench({operation, "--np", "1", "-b", "4K", "-e", "4K", "-n", "4", "--backend",
                             "native,nccl:direct"},
                            {"ELASTIC_NCCL_LIBRARY=" ONE_RANK_NCCL});
    expect_right(bench, 2);
    EXPECT_EQ(bench.rows().at(1).at("backend"), "nccl:direct");
  }
}

TEST(DeviceBench, MeasuresTheBackendNccl) {
  for (const std::string operation : {"allreduce", "all_gather", "reduce_scatter", "broadcast"}) {
    SCOPED_TRACE(operation);
    const DeviceBench bench(
        {operation, "--np", "2", "-b", "4K", "-e", "4K", "-n", "4", "--backend", "nccl"},
        {"ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN, "ELASTIC_NCCL_MEANWHILE=wait",
         "ELASTIC_LOG_LEVEL=info"});
    expect_right(bench, operation == "allreduce" ? 2 : 1);
    EXPECT_THAT(bench.output(), HasSubstr("of tensors on devices go by NCCL from now on"));
  }
}

TEST(DeviceBench, NcclNeedsADeviceForEachRank) {
  const DeviceBench bench({"allreduce", "--np", "2", "--backend", "nccl:direct"},
                          {"ELASTIC_NCCL_LIBRARY=" ONE_RANK_NCCL, "CUDA_STAND_IN_DEVICES=1"});
  EXPECT_EQ(bench.code(), 1);
  EXPECT_THAT(bench.output(), AllOf(HasSubstr("ranks 0 and 1 are both on CUDA device number 0"),
                                    HasSubstr("start fewer ranks")));
}

TEST(DeviceBench, SaysWhatNcclLacks) {
  const DeviceBench missing({"allreduce", "--np", "1", "--backend", "nccl:direct"},
                            {"ELASTIC_NCCL_LIBRARY=/nonexistent/libnccl.so.2"});
  EXPECT_EQ(missing.code(), 1);
  EXPECT_THAT(missing.output(), AllOf(HasSubstr("--backend nccl:direct: rank 0: NCCL cannot be"),
                                      HasSubstr("/nonexistent/libnccl.so.2")));
  const DeviceBench refusing({"allreduce", "--np", "2", "--backend", "nccl:direct"},
                             {"ELASTIC_NCCL_LIBRARY=" ONE_RANK_NCCL});
  EXPECT_EQ(refusing.code(), 1);
  EXPECT_THAT(refusing.output(), HasSubstr("ncclCommInitRankConfig: invalid usage (a stand-in"));
}

#endif

}  // namespace
}  // namespace elastic::testing
