#include <unistd.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "integration/job.hpp"
#include "integration/open_mpi.hpp"

namespace elastic::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::Not;

constexpr std::chrono::seconds kDeadline{100};

// Runs elastic-bench, shows its output when it ends with another code, and returns it.
std::string run_bench(const ScratchFolder& folder, std::vector<std::string> arguments,
                      int expected_code, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), ELASTIC_BENCH);
  Job job(arguments, folder.path() / "output", environment);
  const auto code = job.wait(kDeadline);
  EXPECT_EQ(code.value_or(-1), expected_code) << job.output();
  return job.output();
}

// Runs two ranks, which exchange their addresses in the folder.
std::string run_under_mpirun(const ScratchFolder& folder, std::vector<std::string> arguments,
                             int expected_code) {
  arguments.insert(arguments.begin(), {MPIRUN, "--oversubscribe", "-np", "2", ELASTIC_BENCH});
  std::vector<std::string> environment = open_mpi_settings();
  environment.push_back("XDG_RUNTIME_DIR=" + folder.path().string());
  Job job(arguments, folder.path() / "output", environment);
  const auto code = job.wait(kDeadline);
  EXPECT_EQ(code.value_or(-1), expected_code) << job.output();
  return job.output();
}

void expect_keys(const json& object, const std::vector<std::string>& keys) {
  for (const auto& key : keys) EXPECT_TRUE(object.contains(key)) << key << " in " << object.dump();
}

json report_of(const std::filesystem::path& file) {
  json report = json::parse(read_file(file), nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << file;
  expect_keys(report, {"host", "network", "commit", "command", "results"});
  expect_keys(report["host"], {"hostname", "cores", "cpu", "kernel"});
  expect_keys(report["network"], {"flows_per_link", "congestion_control", "interfaces"});
  return report;
}

TEST(Bench, AllreduceIsRightAndReported) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "allreduce.json").string();
  const std::string output = run_bench(
      folder, {"allreduce", "--np", "2", "-b", "8", "-e", "64K", "-f", "8", "--json", file}, 0);
  EXPECT_THAT(output, AllOf(HasSubstr("# Wrong values: 0 OK"), HasSubstr("algbw")));
  const json report = report_of(file);
  EXPECT_THAT(report["command"].get<std::string>(), HasSubstr("allreduce --np 2 -b 8 -e 64K"));
  // 8 B, 64 B … 32 KiB, each out of place and in place.
  ASSERT_EQ(report["results"].size(), 10U);
  for (const json& row : report["results"]) {
    expect_keys(row, {"backend", "transport", "median_us", "p99_us", "min_us", "algbw_gbs",
                      "busbw_gbs", "in_place"});
    EXPECT_EQ(row["ranks"], 2);
    EXPECT_EQ(row["dtype"], "float");
    EXPECT_EQ(row["op"], "sum");
    EXPECT_EQ(row["wrong"], 0);
  }
  EXPECT_EQ(report["results"][9]["bytes"], 32768);
}

TEST(Bench, AModelPricesTwoThousandRanks) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "model.json").string();
  const std::string output = run_bench(
      folder,
      {"model", "--hosts", "256", "--ranks-per-host", "8", "--network", "c5n.18xlarge", "-b", "64M",
       "-e", "1G", "-f", "16", "--ignore-processor", "--flows", "2", "--json", file},
      0);
  EXPECT_THAT(output, AllOf(HasSubstr("2048 ranks on 256 hosts"), HasSubstr("calculated")));
  const json results = json::parse(read_file(file)).at("results");
  ASSERT_EQ(results.size(), 2U);
  for (const json& row : results) {
    EXPECT_GT(row["share"], 0.9) << row;
    EXPECT_LE(row["share"], 1) << row;
  }
  EXPECT_THAT(run_bench(folder, {"model", "--network", "c5"}, 2),
              HasSubstr("'c5' is no network; known are c5n.18xlarge"));
}

TEST(Bench, OtherCollectivesAreRightAndReported) {
  for (const std::string operation :
       {"all_gather", "reduce_scatter", "broadcast", "alltoall", "gather", "scatter", "reduce"}) {
    ScratchFolder folder;
    const std::string file = (folder.path() / "report.json").string();
    const std::string output = run_bench(
        folder,
        {operation, "--np", "3", "-b", "1K", "-e", "64K", "-f", "64", "-n", "2", "--json", file},
        0);
    EXPECT_THAT(output, HasSubstr("# Wrong values: 0 OK"));
    const json report = report_of(file);
    ASSERT_EQ(report["results"].size(), 2U) << operation;
    for (const json& row : report["results"]) {
      EXPECT_EQ(row["operation"], operation);
      EXPECT_EQ(row["in_place"], operation == "broadcast");
      EXPECT_EQ(row["wrong"], 0);
    }
  }
}

TEST(Bench, FusionIsRightAndReported) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "report.json").string();
  const std::string output = run_bench(folder,
                                       {"fusion", "--np", "2", "--model", "resnet50", "-n", "1",
                                        "-w", "0", "--turns", "1", "--json", file},
                                       0);
  EXPECT_THAT(output, HasSubstr("resnet50, 161 tensors, 25557032 parameters"));
  const json report = report_of(file);
  ASSERT_EQ(report["results"].size(), 3U);
  for (const json& row : report["results"]) {
    EXPECT_EQ(row["bytes"], 4 * 25557032);
    EXPECT_EQ(row["wrong"], 0) << row;
    EXPECT_LE(row["first_us"], row["median_us"]);
  }
  EXPECT_EQ(report["results"][0]["step"], "fused");
}

TEST(Bench, ScalingIsReportedForEachNumberOfRanks) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "report.json").string();
  const std::string plot = (folder.path() / "report.svg").string();
  const std::string output = run_bench(folder,
                                       {"scaling", "--np", "2", "--compute-ms", "5", "-n", "2",
                                        "-w", "0", "--turns", "1", "--json", file, "--plot", plot},
                                       0);
  EXPECT_THAT(output, AllOf(HasSubstr("96 % at 8 GPUs"), HasSubstr("94 % at 8 GPUs")));
  const json report = report_of(file);
  ASSERT_EQ(report["results"].size(), 2U);
  for (int ranks = 1; ranks <= 2; ++ranks) {
    const json& row = report["results"][static_cast<std::size_t>(ranks - 1)];
    EXPECT_EQ(row["ranks"], ranks);
    EXPECT_GE(row["alone_us"], 5000);
    EXPECT_GE(row["median_us"], 5000);
  }
  EXPECT_THAT(read_file(plot), HasSubstr("<svg"));
}

TEST(Bench, TuneSaysWhatWasMeasuredAndChosen) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "report.json").string();
  const std::string output =
      run_bench(folder, {"tune", "--np", "3", "--transport", "tcp", "--json", file}, 0);
  SCOPED_TRACE(output);
  EXPECT_THAT(output, AllOf(HasSubstr("inside a host: latency"), HasSubstr("two_shot")));
  const json report = report_of(file);
  ASSERT_GE(report["results"].size(), 2U);
  const json& last = report["results"].back();
  EXPECT_EQ(last["algorithm"], "two_shot");
  EXPECT_TRUE(last["up_to_bytes"].is_null());
  EXPECT_GT(last["inside_latency_us"], 0);
  EXPECT_GT(last["inside_gbs"], 0);
  EXPECT_EQ(last["between_latency_us"], 0);
  EXPECT_EQ(last["flows_opened"], 0);
  EXPECT_EQ(report["network"]["flows_per_link"], 1);
}

TEST(Bench, SparseComparesTheForms) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "report.json").string();
  const std::string output = run_bench(folder,
                                       {"sparse", "--np", "3", "--rows", "500", "--width", "4",
                                        "--shares", "0,10,100", "-n", "2", "--json", file},
                                       0);
  EXPECT_THAT(output, AllOf(HasSubstr("gathered(ms)"), HasSubstr("chosen(ms)")));
  const json report = report_of(file);
  ASSERT_EQ(report["results"].size(), 3U);
  for (const json& row : report["results"]) {
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_GT(row["gathered_us"], 0);
    EXPECT_GT(row["dense_us"], 0);
  }
  EXPECT_EQ(report["results"][0]["of_all"], 0);
  EXPECT_EQ(report["results"][2]["of_all"], 1);
}

TEST(Bench, BackendsOfOneProcessAreComparedUnderMpirun) {
  ScratchFolder folder;
  const std::string json_file = (folder.path() / "report.json").string();
  const std::string csv_file = (folder.path() / "report.csv").string();
  const std::string plot_file = (folder.path() / "report.svg").string();
  const std::string output =
      run_under_mpirun(folder,
                       {"allreduce", "--backend", "native,native", "-b", "8", "-e", "4K", "-f",
                        "512", "--json", json_file, "--csv", csv_file, "--plot", plot_file},
                       0);
  EXPECT_THAT(output, AllOf(HasSubstr("# Wrong values: 0 OK"), HasSubstr("native#2")));
  const json report = report_of(json_file);
  ASSERT_EQ(report["results"].size(), 8U);  // two sizes, two backends, two places
  EXPECT_EQ(report["results"][0]["ratio"], 1);
  EXPECT_EQ(report["results"][2]["backend"], "native#2");
  EXPECT_THAT(read_file(csv_file), HasSubstr("\nallreduce,native#2,"));
  EXPECT_THAT(read_file(plot_file), AllOf(HasSubstr("<svg"), HasSubstr(">native#2</text>")));
}

TEST(Bench, TheLeastThatItTakesIsComparedInTheSameProcesses) {
  // Two ranks exchange, more of them reduce-scatter and allgather; the larger size goes round all
  // slots.
  const std::vector<std::vector<std::string>> jobs{{"--np", "2", "-d", "float"},
                                                   {"--np", "3", "-d", "bfloat16", "-o", "avg"}};
  const std::vector<std::string> names{"native", "bare:cached", "bare:streaming", "bare:tcp"};
  for (std::vector<std::string> arguments : jobs) {
    ScratchFolder folder;
    const std::string file = (folder.path() / "report.json").string();
    arguments.insert(arguments.begin(), "allreduce");
    arguments.insert(arguments.end(),
                     {"--backend", "native,bare:cached,bare:streaming,bare:tcp", "-b", "8", "-e",
                      "2M", "-i", "1900006", "-n", "4", "-w", "1", "--json", file});
    EXPECT_THAT(run_bench(folder, arguments, 0),
                AllOf(HasSubstr("# Wrong values: 0 OK"), HasSubstr("# bare:cached: elastic's ")));
    const json report = report_of(file);
    ASSERT_EQ(report["results"].size(), 2 * 2 * names.size());
    for (std::size_t row = 0; row < report["results"].size(); ++row) {
      EXPECT_EQ(report["results"][row]["backend"], names[row / 2 % names.size()]);
      EXPECT_EQ(report["results"][row]["wrong"], 0);
    }
  }
}

TEST(Bench, WhatIsNotMeasuredBareIsRefused) {
  ScratchFolder folder;
  EXPECT_THAT(run_bench(folder, {"broadcast", "--np", "2", "--backend", "native,bare:cached"}, 1),
              HasSubstr("--backend bare:cached: only allreduce is measured bare"));
  EXPECT_THAT(run_bench(folder, {"allreduce", "--np", "1", "--backend", "bare:tcp"}, 1),
              HasSubstr("--backend bare:tcp: a single rank"));
}

#ifdef GLOO_PEERS_ARE_BUILT

TEST(Bench, GlooItselfIsComparedInTheSameProcesses) {
  ScratchFolder folder;
  const std::vector<std::string> names{"native",        "gloo:ring",    "gloo:bcube",
                                       "gloo:old-ring", "gloo:chunked", "gloo:halving",
                                       "gloo:old-bcube"};
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  const std::string file = (folder.path() / "report.json").string();
  const std::string output =
      run_bench(folder,
                {"allreduce", "--np", "2", "--backend", list, "-b", "8", "-e", "64K", "-f", "8192",
                 "-n", "4", "-o", "max", "-d", "int32", "--json", file},
                0);
  EXPECT_THAT(output, AllOf(HasSubstr("# Wrong values: 0 OK"), HasSubstr("# gloo:ring: Gloo ")));
  const json report = report_of(file);
  ASSERT_EQ(report["results"].size(), 2 * 2 * names.size());
  for (std::size_t row = 0; row < report["results"].size(); ++row) {
    EXPECT_EQ(report["results"][row]["backend"], names[row / 2 % names.size()]);
    EXPECT_EQ(report["results"][row]["transport"], row / 2 % names.size() == 0 ? "auto" : "own");
    EXPECT_EQ(report["results"][row]["wrong"], 0);
  }
}

TEST(Bench, WhatGlooDoesNotHaveIsRefused) {
  ScratchFolder folder;
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--np", "3", "-e", "64"});
    return run_bench(folder, std::move(arguments), 1);
  };
  EXPECT_THAT(
      refused({"allreduce", "--backend", "gloo:ring", "-d", "bfloat16"}),
      AllOf(HasSubstr("--backend gloo:ring: Gloo has no bfloat16"), Not(HasSubstr("algbw"))));
  EXPECT_THAT(refused({"broadcast", "--backend", "native,gloo:bcube"}),
              HasSubstr("--backend gloo:bcube: of Gloo only allreduce"));
  EXPECT_THAT(refused({"allreduce", "--backend", "gloo:old-bcube"}), HasSubstr("2, 4, 8"));
}

#else

TEST(Bench, APeerThatWasNotBuiltIsRefusedWithWhatToInstall) {
  ScratchFolder folder;
  EXPECT_THAT(run_bench(folder, {"allreduce", "--np", "2", "--backend", "gloo:ring"}, 1),
              AllOf(HasSubstr("--backend gloo:ring: "), HasSubstr("install libgloo-dev")));
}

#endif

#ifdef MPI_PEERS_ARE_BUILT

TEST(Bench, MpiItselfIsComparedInTheSameProcesses) {
  // The second time with the module that has MPI, too.
  for (const std::string others : {"native", "native,mpi"}) {
    for (const std::string operation : {"allreduce", "all_gather", "reduce_scatter", "broadcast",
                                        "alltoall", "gather", "scatter", "reduce"}) {
      ScratchFolder folder;
      const std::string output =
          run_under_mpirun(folder,
                           {operation, "--backend", "mpi:direct," + others, "-b", "8", "-e", "5M",
                            "-i", "5000000", "-n", "4", "-d", "double"},
                           0);
      EXPECT_THAT(output, AllOf(HasSubstr("# Wrong values: 0 OK"), HasSubstr("# mpi:direct: ")));
    }
  }
}

TEST(Bench, WhatMpiDoesNotHaveIsRefused) {
  ScratchFolder folder;
  EXPECT_THAT(
      run_under_mpirun(folder, {"allreduce", "--backend", "mpi:direct", "-d", "half"}, 2),
      AllOf(HasSubstr("--backend mpi:direct: MPI has no 16-bit floats"), Not(HasSubstr("algbw"))));
  EXPECT_THAT(run_bench(folder, {"allreduce", "--np", "2", "--backend", "mpi:direct"}, 1),
              HasSubstr("--backend mpi:direct: MPI connects the processes that mpirun starts"));
}

#endif

TEST(Bench, ABackendThatIsNotThereIsRefusedWithThoseThatAre) {
  ScratchFolder folder;
  EXPECT_THAT(run_under_mpirun(folder, {"allreduce", "--backend", "native,smoke"}, 2),
              AllOf(HasSubstr("'smoke'"), HasSubstr("native"), Not(HasSubstr("algbw"))));
}

TEST(Bench, AllreduceOfOtherTypesOverTcp) {
  ScratchFolder folder;
  const std::string output =
      run_bench(folder,
                {"allreduce", "--np", "3", "-b", "4K", "-e", "20K", "-i", "8K", "-n", "2", "-w",
                 "0", "-d", "bfloat16", "-o", "avg", "--transport", "tcp"},
                0);
  EXPECT_THAT(output, AllOf(HasSubstr("transport tcp"), HasSubstr("# Wrong values: 0 OK")));
}

TEST(Bench, WhatEncryptionCostsIsReportedSideBySide) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "encryption.json").string();
  const std::string output = run_bench(folder,
                                       {"allreduce", "--np", "2", "-b", "4K", "-e", "64K", "-f",
                                        "16", "-n", "2", "--encrypt", "--json", file},
                                       0);
  EXPECT_THAT(output, HasSubstr("in the clear and under TLS"));
  const json report = report_of(file);
  // Two sizes, each in the clear and encrypted, each out of place and in place.
  ASSERT_EQ(report["results"].size(), 8U);
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(report["results"][row]["transport"], "tcp");
    EXPECT_EQ(report["results"][row]["encrypt"], row / 2 % 2 == 1) << row;
    EXPECT_EQ(report["results"][row]["wrong"], 0);
  }
}

TEST(Bench, RecoveryIsReported) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "recovery.json").string();
  const std::string output = run_bench(
      folder, {"recovery", "--np", "3", "--bytes", "65536", "--runs", "2", "--json", file}, 0);
  EXPECT_THAT(output, HasSubstr("# seed "));
  const json report = report_of(file);
  ASSERT_EQ(report["results"].size(), 1U);
  const json& row = report["results"][0];
  expect_keys(
      row, {"transport", "encrypt", "min_ms", "p50_ms", "p99_ms", "max_ms", "return_p50_ms",
            "detect_p50_ms", "freeze_p50_ms", "decide_p50_ms", "relink_p50_ms", "replay_p50_ms"});
  EXPECT_EQ(row["fault"], "sigkill");
  EXPECT_EQ(row["ranks"], 3);
  EXPECT_EQ(row["bytes"], 65536);
  EXPECT_EQ(row["runs"], 2);
}

TEST(Bench, RecoveryFromOtherFaults) {
  ScratchFolder folder;
  for (const char* fault : {"two", "sigstop"}) {
    const std::string output = run_bench(
        folder, {"recovery", "--np", "4", "--bytes", "4096", "--runs", "1", "--fault", fault}, 0);
    EXPECT_THAT(output, AllOf(HasSubstr(std::string("fault ") + fault), HasSubstr("detect ")));
  }
}

TEST(Bench, RecoveryFromACutLink) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, for network namespaces";
  ScratchFolder folder;
  const std::string output = run_bench(
      folder, {"recovery", "--np", "3", "--bytes", "4096", "--runs", "1", "--fault", "link"}, 0);
  EXPECT_THAT(output,
              AllOf(HasSubstr("transport tcp, fault link"), HasSubstr("no worker was lost")));
}

TEST(Bench, JoinIsReported) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "join.json").string();
  run_bench(folder, {"join", "--np", "3", "--state-bytes", "1M", "--runs", "1", "--json", file}, 0);
  const json report = report_of(file);
  ASSERT_EQ(report["results"].size(), 1U);
  const json& row = report["results"][0];
  expect_keys(row, {"transport", "encrypt", "gap_p50_ms", "gap_max_ms", "join_p50_ms",
                    "broadcast_ms", "ratio"});
  EXPECT_EQ(row["np"], 3);
  EXPECT_EQ(row["state_bytes"], 1 << 20);
  EXPECT_EQ(row["runs"], 1);
}

TEST(Bench, WhatIsEncryptedIsReportedAsThat) {
  const std::vector<std::vector<std::string>> measurements{
      {"recovery", "--np", "2", "--bytes", "4096", "--transport", "tcp", "--runs", "1"},
      {"join", "--np", "2", "--state-bytes", "64K", "--transport", "tcp", "--runs", "1"}};
  for (const bool encrypt : {false, true}) {
    for (std::vector<std::string> arguments : measurements) {
      const ScratchFolder folder;
      const std::string file = (folder.path() / "report.json").string();
      arguments.insert(arguments.end(), {"--json", file});
      const std::string output = run_bench(
          folder, arguments, 0, {std::string("ELASTIC_ENCRYPT=") + (encrypt ? "1" : "0")});
      const auto says = HasSubstr("transport tcp, encrypted");
      EXPECT_THAT(output, encrypt ? Matcher<std::string>(says) : Not(says));
      EXPECT_EQ(report_of(file)["results"][0]["encrypt"], encrypt);
    }
  }
}

TEST(Bench, BadOptionsEndWithTwo) {
  ScratchFolder folder;
  EXPECT_THAT(run_bench(folder, {"allreduce", "--np", "2", "-b", "lots"}, 2), HasSubstr("-b"));
  EXPECT_THAT(run_bench(folder, {"recovery", "--fault", "fire"}, 2), HasSubstr("--fault"));
}

TEST(Bench, AReportThatCannotBeWrittenIsFoundFirst) {
  ScratchFolder folder;
  const std::string file = (folder.path() / "none" / "report.json").string();
  EXPECT_THAT(run_bench(folder, {"allreduce", "--np", "2", "--json", file}, 1),
              AllOf(HasSubstr("--json " + file), Not(HasSubstr("algbw"))));
}

}  // namespace
}  // namespace elastic::testing
