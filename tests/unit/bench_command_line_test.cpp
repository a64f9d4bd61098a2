#include <gmock/gmock.h>

#include "benchmarks/command_line.hpp"
#include "benchmarks/job/library_settings.hpp"

namespace elastic::bench {
namespace {

using ::testing::HasSubstr;

template <typename Wanted>
Wanted parsed(const std::vector<std::string>& arguments) {
  auto request = parse_command_line(arguments);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return std::get<Wanted>(request.value());
}

TEST(BenchCommandLine, ReadsACollective) {
  const auto options = parsed<CollectiveOptions>(
      {"allreduce", "-b",  "8", "-e",          "64K", "-f",     "4",        "-n",
       "7",         "-w",  "1", "-c",          "0",   "-d",     "bfloat16", "-o",
       "avg",       "-np", "3", "--transport", "tcp", "--json", "out file"});
  EXPECT_EQ(options.sizes.min, 8U);
  EXPECT_EQ(options.sizes.max, 65536U);
  EXPECT_EQ(options.sizes.factor, 4U);
  EXPECT_EQ(options.iterations, 7);
  EXPECT_EQ(options.warmup, 1);
  EXPECT_FALSE(options.check);
  EXPECT_EQ(options.dtype, DType::kBF16);
  EXPECT_EQ(options.op, ReduceOp::kAverage);
  EXPECT_EQ(options.np, 3);
  EXPECT_EQ(options.operation, "allreduce");
  EXPECT_EQ(options.turns, 1);
  EXPECT_EQ(options.transport, "tcp");
  EXPECT_THAT(options.command, HasSubstr("elastic-bench allreduce -b 8"));
  EXPECT_THAT(options.command, HasSubstr("--json 'out file'"));
}

TEST(BenchCommandLine, RanksMeasureTheSame) {
  for (const std::string step : {"-f", "-i"}) {
    auto options = parsed<CollectiveOptions>({"allreduce", "-b", "16", "-e", "1M", step, "32", "-d",
                                              "int64", "-o", "max", "--np", "2", "--json", "f"});
    const auto rank = parsed<CollectiveOptions>(rank_arguments(options));
    EXPECT_EQ(rank.np, 0);
    EXPECT_EQ(sizes_of(rank.sizes), sizes_of(options.sizes));
    EXPECT_EQ(rank.dtype, DType::kI64);
    EXPECT_EQ(rank.op, ReduceOp::kMax);
    EXPECT_EQ(rank.json, "f");
    EXPECT_EQ(rank.command, options.command);
  }
}

TEST(BenchCommandLine, ReadsAModel) {
  const auto options =
      parsed<ModelOptions>({"model", "--hosts", "256", "--ranks-per-host", "8", "--network", "lab",
                            "-b", "64K", "-e", "1G", "--algorithm", "ring", "--flows", "16"});
  EXPECT_EQ(options.hosts, 256);
  EXPECT_EQ(options.ranks_per_host, 8);
  EXPECT_EQ(options.network, "lab");
  EXPECT_EQ(options.sizes.max, std::size_t{1} << 30);
  EXPECT_EQ(options.algorithm, plan::AllreduceAlgorithm::kRing);
  EXPECT_EQ(options.flows, 16);
  EXPECT_TRUE(
      parsed<ModelOptions>({"model", "--network", "lab", "--algorithm", "cheapest"}).cheapest);
}

TEST(BenchCommandLine, RefusesAModelOfNothing) {
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"model", "--network", "lab"});
    return parse_command_line(arguments).status().message();
  };
  EXPECT_THAT(error({"--algorithm", "fast"}), HasSubstr("chosen, cheapest, or one of one_shot"));
  EXPECT_THAT(error({"--hosts", "1"}), HasSubstr("a single rank sends nothing"));
  EXPECT_THAT(error({"--hosts", "60000", "--ranks-per-host", "8"}), HasSubstr("65536 ranks"));
  EXPECT_THAT(error({"-b", "2"}), HasSubstr("less than one element"));
}

TEST(BenchCommandLine, SeveralBackendsTakeTurns) {
  const auto options =
      parsed<CollectiveOptions>({"broadcast", "--backend", "native,gloo", "--rendezvous", "a:1,b:2",
                                 "--csv", "c", "--plot", "p"});
  EXPECT_EQ(options.operation, "broadcast");
  EXPECT_EQ(options.backends, (std::vector<std::string>{"native", "gloo"}));
  EXPECT_EQ(options.rendezvous, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(options.turns, 4);
  EXPECT_EQ(options.csv, "c");
  EXPECT_EQ(options.plot, "p");
}

TEST(BenchCommandLine, PeersNeedNoJobOfTheirOwn) {
  const auto options = parsed<CollectiveOptions>(
      {"allreduce", "--np", "2", "--backend", "gloo,gloo:ring,mpi:direct", "--rendezvous", "a:1"});
  const auto settings = library_settings(options, {});
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings.value().backends, options.backends);
  EXPECT_EQ(settings.value().jobs, std::vector<std::string>{"gloo"});
  const auto alone = parsed<CollectiveOptions>({"allreduce", "--backend", "gloo:ring"});
  EXPECT_EQ(library_settings(alone, {}).value().jobs, std::vector<std::string>{"native"});
}

TEST(BenchCommandLine, PeersAreRefusedWhereThereAreNone) {
  const auto message = [](const std::vector<std::string>& arguments) {
    return parse_command_line(arguments).status().message();
  };
  EXPECT_THAT(message({"allreduce", "--backend", "native,gloo:rink"}),
              HasSubstr("--backend gloo:rink: the peers are mpi:direct, gloo:ring"));
  EXPECT_THAT(message({"fusion", "--backend", "gloo:ring"}), HasSubstr("--backend gloo:ring"));
  EXPECT_THAT(message({"allreduce", "--np", "2", "--encrypt", "--backend", "gloo:ring"}),
              HasSubstr("--backend gloo:ring"));
}

TEST(BenchCommandLine, WhatEncryptionCostsIsMeasuredOverTcp) {
  EXPECT_EQ(parsed<CollectiveOptions>({"allreduce", "--np", "2", "--encrypt"}).transport, "tcp");
  EXPECT_EQ(parsed<CollectiveOptions>({"allreduce", "--encrypt"}).transport, "");
  const auto request =
      parse_command_line({"allreduce", "--np", "2", "--encrypt", "--transport", "shm"});
  EXPECT_THAT(request.status().message(), HasSubstr("--encrypt with --transport shm"));
}

TEST(BenchCommandLine, TensorsMayLieOnDevices) {
  EXPECT_EQ(parsed<CollectiveOptions>({"allreduce"}).device, "host");
  const auto collective = parsed<CollectiveOptions>(
      {"allreduce", "--device", "cuda", "--backend", "native,nccl:direct"});
  EXPECT_EQ(collective.device, "cuda");
  EXPECT_EQ(parsed<CollectiveOptions>(rank_arguments(collective)).device, "cuda");
  EXPECT_EQ(parsed<FusionOptions>({"fusion", "--device", "cuda"}).device, "cuda");
  EXPECT_EQ(parsed<RecoveryOptions>({"recovery", "--device", "cuda"}).device, "cuda");
}

TEST(BenchCommandLine, ReadsAFusion) {
  const auto options = parsed<FusionOptions>(
      {"fusion", "--model", "vgg16", "-n", "6", "-w", "0", "--turns", "2", "--np", "3"});
  EXPECT_EQ(options.model, "vgg16");
  EXPECT_EQ(options.iterations, 6);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.turns, 2);
  EXPECT_EQ(options.np, 3);
}

TEST(BenchCommandLine, ReadsAScaling) {
  const auto options =
      parsed<ScalingOptions>({"scaling", "--compute-ms", "2.5", "--np", "4", "--plot", "p"});
  EXPECT_EQ(options.model, "resnet50");
  EXPECT_DOUBLE_EQ(options.compute_ms, 2.5);
  EXPECT_EQ(options.np, 4);
  EXPECT_EQ(parsed<ScalingOptions>(rank_arguments(options)).np, 0);
}

TEST(BenchCommandLine, ReadsATune) {
  const auto options = parsed<TuneOptions>({"tune", "--np", "3", "--transport", "tcp"});
  EXPECT_EQ(options.np, 3);
  EXPECT_EQ(options.transport, "tcp");
}

TEST(BenchCommandLine, ReadsASparseAllreduce) {
  const auto options = parsed<SparseOptions>(
      {"sparse", "--np", "2", "--rows", "1000", "--width", "8", "--shares", "0.5,20", "-n", "3"});
  EXPECT_EQ(options.rows, 1000U);
  EXPECT_EQ(options.width, 8U);
  EXPECT_EQ(options.shares, (std::vector<double>{0.5, 20}));
  EXPECT_EQ(options.iterations, 3);
  EXPECT_EQ(parsed<SparseOptions>(rank_arguments(options)).np, 0);
}

TEST(BenchCommandLine, ReadsARecovery) {
  const auto options =
      parsed<RecoveryOptions>({"recovery", "--np", "3", "--bytes", "64K", "--runs", "2", "--fault",
                               "sigstop", "--seed", "9", "--evict-after-ms", "700"});
  EXPECT_EQ(options.np, 3);
  EXPECT_EQ(options.bytes, 65536U);
  EXPECT_EQ(options.runs, 2);
  EXPECT_EQ(options.fault, "sigstop");
  EXPECT_EQ(options.evict_after_ms, 700);
  EXPECT_EQ(options.seed, 9U);
}

TEST(BenchCommandLine, ACutLinkIsOneOfTcp) {
  const auto options = parsed<RecoveryOptions>({"recovery", "--fault", "link"});
  EXPECT_EQ(options.fault, "link");
  EXPECT_EQ(options.transport, "tcp");
}

TEST(BenchCommandLine, WorkersGetWhatTheRunSays) {
  const RecoveryWorkerOptions options{.np = 3,
                                      .bytes = 80,
                                      .victims = {2, 0},
                                      .stops = true,
                                      .between = true,
                                      .hosts = {"/a", "/b", "/c"},
                                      .device = "cuda",
                                      .delay = 0.25,
                                      .transport = "shm",
                                      .folder = "/x"};
  const auto worker = parsed<RecoveryWorkerOptions>(worker_arguments(options));
  EXPECT_EQ(worker.np, 3);
  EXPECT_EQ(worker.bytes, 80U);
  EXPECT_EQ(worker.victims, (std::vector<int>{2, 0}));
  EXPECT_TRUE(worker.stops);
  EXPECT_TRUE(worker.between);
  EXPECT_EQ(worker.hosts, options.hosts);
  EXPECT_DOUBLE_EQ(worker.delay, 0.25);
  EXPECT_EQ(worker.folder, "/x");
  EXPECT_EQ(worker.transport, "shm");
  EXPECT_EQ(worker.device, "cuda");
}

TEST(BenchCommandLine, ErrorsNameTheOption) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"allreduce", "-b", "x"}, "-b"},
      {{"allreduce", "-e", "1T"}, "-e"},
      {{"allreduce", "-i", "0"}, "-i"},
      {{"allreduce", "-b", "64K", "-e", "8"}, "-e"},
      {{"allreduce", "-b", "4", "-d", "double"}, "-b"},
      {{"allreduce", "-f", "1"}, "--stepfactor"},
      {{"allreduce", "-n", "0"}, "--iters"},
      {{"allreduce", "-d", "complex"}, "-d"},
      {{"allreduce", "-o", "xor"}, "-o"},
      {{"allreduce", "--np", "-1"}, "--np"},
      {{"allreduce", "--np", "2", "--backend", "native,gloo"}, "mpirun -np 2"},
      {{"allreduce", "--backend", "native,gloo", "--rendezvous", "a:1"}, "--rendezvous"},
      {{"allreduce", "--turns", "0"}, "--turns"},
      {{"broadcast", "-o", "sum"}, "-o"},
      {{"allreduce", "--transport", "rdma"}, "--transport"},
      {{"allreduce", "--colour"}, "--colour"},
      {{"allreduce", "--device", "tpu"}, "--device"},
      {{"allreduce", "--device", "cuda", "--memory", "allocated"}, "--memory allocated"},
      {{"allreduce", "--device", "cuda", "--backend", "native,gloo:ring"}, "host memory only"},
      {{"allreduce", "--device", "cuda", "--backend", "mpi:direct"}, "host memory only"},
      {{"allreduce", "--backend", "nccl:direct"}, "give --device cuda"},
      {{"fusion", "--device", "cuda", "--backend", "nccl:direct"}, "not with peers"},
      {{"recovery", "--device", "tpu"}, "--device"},
      {{"fusion", "--model", "lenet"}, "--model"},
      {{"fusion", "--np", "2", "--backend", "native,gloo"}, "mpirun -np 2"},
      {{"scaling", "--compute-ms", "0"}, "--compute-ms"},
      {{"scaling", "--backend", "native,gloo"}, "--backend"},
      {{"tune", "--backend", "gloo"}, "--backend"},
      {{"sparse", "--shares", "10,101"}, "--shares"},
      {{"sparse", "--rows", "0"}, "--rows"},
      {{"sparse", "--backend", "native,gloo", "--rendezvous", "a:1,a:2"}, "--backend"},
      {{"recovery", "--np", "1"}, "--np"},
      {{"recovery", "--np", "33"}, "--np"},
      {{"recovery", "--bytes", "12"}, "--bytes"},
      {{"recovery", "--runs", "0"}, "--runs"},
      {{"recovery", "--fault", "fire"}, "--fault"},
      {{"recovery", "--fault", "two", "--np", "2"}, "--np"},
      {{"recovery", "--fault", "link", "--np", "2"}, "--np"},
      {{"recovery", "--fault", "link", "--transport", "shm"}, "--transport"},
      {{"recovery", "--evict-after-ms", "0"}, "--evict-after-ms"},
      {{}, "subcommand"},
  };
  for (const auto& [arguments, name] : cases) {
    const auto request = parse_command_line(arguments);
    ASSERT_FALSE(request.ok()) << name;
    EXPECT_EQ(request.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(request.status().message(), HasSubstr(name));
  }
}

TEST(BenchLibrarySettings, SayWhatIsInForce) {
  EXPECT_EQ(library_settings("", {}).value().transport, "auto");
  EXPECT_EQ(library_settings("", {}).value().backend, "native");
  EXPECT_EQ(library_settings("tcp", {}).value().transport, "tcp");
  EXPECT_EQ(library_settings("", {}).value().encrypt, std::nullopt);
  EXPECT_EQ(library_settings("", {{"ELASTIC_ENCRYPT", "1"}}).value().encrypt, true);
  EXPECT_EQ(library_settings("", {{"ELASTIC_ENCRYPT", "0"}}).value().encrypt, false);
  EXPECT_EQ(library_settings("", {{"ELASTIC_TRANSPORT", "shm"}}).value().transport, "shm");
  EXPECT_EQ(library_settings("shm", {{"ELASTIC_TRANSPORT", "shm"}}).value().transport, "shm");
  const auto conflict = library_settings("tcp", {{"ELASTIC_TRANSPORT", "shm"}});
  EXPECT_THAT(conflict.status().message(), HasSubstr("--transport tcp"));
  EXPECT_THAT(conflict.status().message(), HasSubstr("ELASTIC_TRANSPORT=shm"));
}

TEST(BenchLibrarySettings, HaveTheBackendsToMeasure) {
  const auto backends = [](std::vector<std::string> wanted, const EnvironmentMap& environment) {
    RankOptions options;
    options.backends = std::move(wanted);
    return library_settings(options, environment).value().backends;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(backends({}, {}), Names{"native"});
  EXPECT_EQ(backends({}, {{"ELASTIC_BACKEND", "gloo"}}), Names{"gloo"});
  EXPECT_EQ(backends({"native", "gloo"}, {}), (Names{"native", "gloo"}));
  EXPECT_EQ(backends({"gloo"}, {{"ELASTIC_JOB", "j"}, {"ELASTIC_RENDEZVOUS", "a:1"}}),
            Names{"gloo"});
}

TEST(BenchLibrarySettings, RefuseAnEnvironmentThatWouldMakeOneJobOfAll) {
  RankOptions options;
  options.backends = {"native", "gloo"};
  for (const std::string name : {"ELASTIC_RENDEZVOUS", "ELASTIC_JOB", "ELASTIC_BACKEND"}) {
    const auto settings = library_settings(options, {{name, "x"}});
    EXPECT_EQ(settings.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(settings.status().message(), HasSubstr(name + "=x"));
  }
  options.rendezvous = {"a:1", "b:2"};
  EXPECT_TRUE(library_settings(options, {{"ELASTIC_JOB", "x"}}).ok());
  EXPECT_FALSE(library_settings(options, {{"ELASTIC_RENDEZVOUS", "x"}}).ok());
}

}  // namespace
}  // namespace elastic::bench
