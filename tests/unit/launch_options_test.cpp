#include "rendezvous/launcher/launch_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/options.hpp"
#include "rendezvous/launcher/worker_environment.hpp"
#include "rendezvous/membership/membership.hpp"

namespace elastic::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

LaunchOptions parsed(const std::vector<std::string>& arguments) {
  const auto request = parse_launch_options(arguments);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.ok() ? std::get<LaunchOptions>(request.value()) : LaunchOptions();
}

std::string refusal(const std::vector<std::string>& arguments) {
  const auto request = parse_launch_options(arguments);
  EXPECT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), Code::kInvalidArgument);
  return request.status().message();
}

/// Workers that are there wait until the server begins without those that are missing.
TEST(LaunchOptions, WorkersWaitLongerThanTheServerByDefault) {
  EXPECT_GT(Options().init_timeout, rendezvous::MembershipOptions().start_timeout);
}

TEST(LaunchOptions, ReadsNpWithOneDashAndTwo) {
  EXPECT_EQ(parsed({"-np", "4", "./trainer"}).np, 4);
  EXPECT_EQ(parsed({"--np", "4", "./trainer"}).np, 4);
  EXPECT_EQ(parsed({"-n", "4", "./trainer"}).np, 4);
  EXPECT_EQ(parsed({"-np=4", "./trainer"}).np, 4);
}

TEST(LaunchOptions, HasDefaults) {
  const auto options = parsed({"-np", "4", "./trainer"});
  EXPECT_EQ(options.min_np, 1);
  EXPECT_EQ(options.max_np, 4);
  EXPECT_EQ(options.max_restarts, 3);
  EXPECT_EQ(options.bind, "127.0.0.1");
  EXPECT_TRUE(options.prefix);
  EXPECT_FALSE(options.encrypt);
  EXPECT_TRUE(check_job_id(options.job).ok());
}

TEST(LaunchOptions, AnAddressToBindToMayHaveBrackets) {
  for (const char* address : {"::1", "[::1]"}) {
    const auto options = parsed({"-np", "1", "--bind", address, "./trainer"});
    EXPECT_EQ(options.bind, "::1");
    const auto environment = worker_environment({}, options, {"[::1]:5", "j", 0, 1}, 0, 0, 3);
    EXPECT_THAT(environment, testing::Not(Contains(testing::StartsWith("ELASTIC_BIND="))))
        << "no other host reaches the server";
  }
}

TEST(LaunchOptions, SaysHowLongLostConnectionsMayTakeToComeBack) {
  const auto options = parsed(
      {"-np", "1", "--disconnect-grace-ms", "700", "--outage-window-ms", "60000", "./trainer"});
  EXPECT_EQ(options.disconnect_grace, Milliseconds(700));
  EXPECT_EQ(options.outage_window, Milliseconds(60000));
  EXPECT_EQ(parsed({"-np", "1", "./trainer"}).disconnect_grace, Milliseconds(1500));
  EXPECT_THAT(refusal({"-np", "1", "--outage-window-ms", "0", "./trainer"}),
              HasSubstr("--outage-window-ms must be at least 1"));
}

TEST(LaunchOptions, SaysHowLongMissingWorkersAreWaitedFor) {
  const auto options = parsed({"-np", "2", "--start-timeout-ms", "120000",
                               "--below-minimum-timeout-ms", "5000", "./trainer"});
  EXPECT_EQ(options.start_timeout, Milliseconds(120000));
  EXPECT_EQ(options.below_minimum_timeout, Milliseconds(5000));
  const auto environment = worker_environment({}, options, {"h:1", "j", 0}, 0, 0, 3);
  EXPECT_THAT(environment, Contains("ELASTIC_INIT_TIMEOUT_MS=150000"))
      << "workers wait longer than their server";
  EXPECT_THAT(
      worker_environment({{"ELASTIC_INIT_TIMEOUT_MS", "7"}}, options, {"h:1", "j", 0}, 0, 0, 3),
      Contains("ELASTIC_INIT_TIMEOUT_MS=7"));
  const rendezvous::MembershipOptions server;
  EXPECT_EQ(parsed({"-np", "2", "x"}).start_timeout, server.start_timeout);
  EXPECT_EQ(parsed({"-np", "2", "x"}).below_minimum_timeout, server.below_minimum_timeout);
  EXPECT_THAT(refusal({"-np", "2", "--start-timeout-ms", "0", "x"}), HasSubstr("start-timeout-ms"));
  // The workers' own wait, which is longer, has to be one that they accept.
  const auto longest = parsed({"-np", "2", "--start-timeout-ms", "86370000", "x"});
  EXPECT_THAT(worker_environment({}, longest, {"h:1", "j", 0}, 0, 0, 3),
              Contains("ELASTIC_INIT_TIMEOUT_MS=86400000"));
  EXPECT_THAT(refusal({"-np", "2", "--start-timeout-ms", "86370001", "x"}),
              HasSubstr("start-timeout-ms"));
}

TEST(LaunchOptions, JoinNeedsASecretAndLeavesTheServersOptionsToIt) {
  const auto options =
      parsed({"--join", "node1:29400", "--secret-file", "f", "-np", "2", "--slots", "4", "x"});
  EXPECT_EQ(options.join, "node1:29400");
  EXPECT_EQ(options.slots, 4);
  EXPECT_EQ(options.job, "") << "the server says it";
  EXPECT_EQ(parsed({"-np", "2", "--max-np", "5", "x"}).slots, 5);
  EXPECT_THAT(refusal({"--join", "h:1", "-np", "2", "x"}), HasSubstr("--secret-file FILE"));
  EXPECT_THAT(refusal({"--join", "h:1", "--secret-stdin", "-np", "2", "--max-np", "4", "x"}),
              HasSubstr("--max-np is for the job's server"));
  EXPECT_THAT(refusal({"--secret-file", "f", "--secret-stdin", "-np", "2", "x"}),
              HasSubstr("give one of them"));
  EXPECT_THAT(refusal({"-np", "3", "--slots", "2", "x"}), HasSubstr("--slots 2"));
  EXPECT_THAT(refusal({"-np", "1", "--slots", "0", "x"}),
              HasSubstr("--slots must be at least 1, not 0"));
  EXPECT_THAT(refusal({"-np", "1", "--max-np", "0", "x"}),
              HasSubstr("--max-np must be at least 1, not 0"));
}

TEST(LaunchOptions, WorkersOfSeveralLaunchersHaveNamesOfTheirOwn) {
  const auto options = parsed({"--join", "node1:29400", "--secret-file", "f", "-np", "2", "x"});
  const auto environment =
      worker_environment({{"RANK", "7"}, {"WORLD_SIZE", "9"}}, options, {"h:1", "j", 2}, 1, 0, 3);
  EXPECT_THAT(environment, Contains("ELASTIC_LABEL=slot-2.1"));
  EXPECT_THAT(environment, Contains("ELASTIC_SLOT=200001"));
  EXPECT_THAT(environment, Contains("ELASTIC_BIND=0.0.0.0"));
  EXPECT_THAT(environment, Contains("LOCAL_RANK=1"));
  EXPECT_THAT(environment, ::testing::Not(Contains(HasSubstr("WORLD_SIZE=9"))));
}

TEST(LaunchOptions, WorkersShareTheProcessors) {
  const JobPlace job{"h:1", "j", 0, 16};
  const auto environment =
      worker_environment({}, parsed({"-np", "2", "--max-np", "5", "x"}), job, 0, 0, 3);
  EXPECT_THAT(environment, Contains("OMP_NUM_THREADS=3"));
  EXPECT_THAT(worker_environment({}, parsed({"-np", "40", "x"}), job, 0, 0, 3),
              Contains("OMP_NUM_THREADS=1"));
  EXPECT_THAT(
      worker_environment({{"OMP_NUM_THREADS", "9"}}, parsed({"-np", "2", "x"}), job, 0, 0, 3),
      Contains("OMP_NUM_THREADS=9"));
  EXPECT_THAT(worker_environment({}, parsed({"-np", "1", "x"}), job, 0, 0, 3),
              ::testing::Not(Contains(HasSubstr("OMP_NUM_THREADS"))));
}

TEST(LaunchOptions, LeavesTheProgramsArgumentsAlone) {
  EXPECT_THAT(
      parsed({"-np", "2", "./trainer", "-np", "7", "--max-np", "x", "--", "--help"}).command,
      ElementsAre("./trainer", "-np", "7", "--max-np", "x", "--", "--help"));
  EXPECT_THAT(parsed({"-np", "2", "--", "./trainer", "-np", "7"}).command,
              ElementsAre("./trainer", "-np", "7"));
}

TEST(LaunchOptions, ReadsEverything) {
  const auto options = parsed({"-np",
                               "4",
                               "--min-np",
                               "2",
                               "--max-np",
                               "8",
                               "--max-restarts",
                               "0",
                               "--bind",
                               "::1",
                               "--port",
                               "4711",
                               "--job",
                               "a.b-c_1",
                               "--evict-after-ms",
                               "900",
                               "--max-join-stall-ms",
                               "2500",
                               "--drain-seconds",
                               "0.5",
                               "--quarantine-seconds",
                               "0",
                               "--output-dir",
                               "out",
                               "--no-prefix",
                               "--encrypt",
                               "x"});
  EXPECT_EQ(options.min_np, 2);
  EXPECT_EQ(options.max_np, 8);
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.bind, "::1");
  EXPECT_EQ(options.port, 4711);
  EXPECT_EQ(options.job, "a.b-c_1");
  EXPECT_EQ(options.evict_after, Milliseconds(900));
  EXPECT_EQ(options.max_join_stall, Milliseconds(2500));
  EXPECT_EQ(options.drain, Milliseconds(500));
  EXPECT_EQ(options.quarantine, Milliseconds(0));
  EXPECT_EQ(options.output_dir, "out");
  EXPECT_FALSE(options.prefix);
  EXPECT_TRUE(options.encrypt);
}

TEST(LaunchOptions, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal({"./trainer"}), HasSubstr("-np is missing"));
  EXPECT_THAT(refusal({"-np", "2"}), HasSubstr("program to run is missing"));
  EXPECT_THAT(refusal({"-np", "0", "x"}), HasSubstr("-np must be at least 1, not 0"));
  for (const char* np : {"010", "0x10"}) {
    EXPECT_THAT(refusal({"-np", np, "x"}), HasSubstr("must be a whole number")) << np;
  }
  EXPECT_THAT(refusal({"-np", "70000", "x"}), HasSubstr("-np must be at most 4096, not 70000"));
  EXPECT_EQ(refusal({"-np", "two", "x"}), "-np is 'two': must be a whole number of at least 1");
  EXPECT_THAT(refusal({"-np", "2:4", "x"}), HasSubstr("a range is given by --min-np and --max-np"));
  EXPECT_EQ(refusal({"-np", "2", "--max-restarts", "1.5", "x"}),
            "--max-restarts is '1.5': must be a whole number of at least 0");
  EXPECT_THAT(refusal({"-np", "2", "--min-np", "3", "x"}), HasSubstr("greater than --max-np"));
  EXPECT_THAT(refusal({"-np", "2", "--min-np", "3", "--max-np", "4", "x"}),
              HasSubstr("-np 2 is not between --min-np 3 and --max-np 4"));
  EXPECT_THAT(refusal({"-np", "9", "--max-np", "4", "x"}), HasSubstr("is not between"));
  EXPECT_THAT(refusal({"-np", "2", "--max-restarts", "-1", "x"}), HasSubstr("--max-restarts"));
  EXPECT_THAT(refusal({"-np", "2", "--port", "70000", "x"}), HasSubstr("70000"));
  EXPECT_THAT(refusal({"-np", "2", "--job", "../x", "x"}), HasSubstr("--job"));
  EXPECT_THAT(refusal({"-np", "2", "--drain-seconds", "nan", "x"}), HasSubstr("--drain-seconds"));
  EXPECT_THAT(refusal({"-np", "2", "--exit-seconds", "nan", "x"}), HasSubstr("--exit-seconds"));
  EXPECT_THAT(refusal({"-np", "2", "--drain-seconds", "inf", "x"}), HasSubstr("--drain-seconds"));
  EXPECT_THAT(refusal({"-np", "2", "--quarantine-seconds", "nan", "x"}),
              HasSubstr("--quarantine-seconds"));
  EXPECT_THAT(
      refusal({"--join", "h:1", "--secret-stdin", "-np", "2", "--quarantine-seconds", "5", "x"}),
      HasSubstr("--quarantine-seconds is for the job's server"));
  EXPECT_THAT(refusal({"-np", "2", "--bogus", "x"}), HasSubstr("unknown option --bogus"));
  EXPECT_THAT(refusal({"--bogus", "-np", "2", "x"}), HasSubstr("unknown option --bogus"));
}

TEST(LaunchOptions, RefusesWhatWouldBeIgnored) {
  for (const char* option : {"--ssh", "--ssh-args", "--placement"}) {
    EXPECT_EQ(refusal({"-np", "1", option, "spread", "x"}),
              std::string(option) + " needs --hosts, --hostfile or --discover");
  }
  for (const char* option : {"--hosts", "--hostfile", "--discover", "--job", "--output-dir",
                             "--event-log", "--prepare", "--bind"}) {
    EXPECT_EQ(refusal({"-np", "1", option, "", "x"}),
              std::string(option) + " is empty: give its value, or leave the option out");
  }
  EXPECT_THAT(refusal({"-np", "1", "--max-job-restarts", "-1", "x"}),
              HasSubstr("--max-job-restarts must not be negative"));
  EXPECT_THAT(refusal({"--join", "127.0.0.1", "--secret-stdin", "-np", "1", "x"}),
              HasSubstr("--join: '127.0.0.1' is not an address; it must be HOST:PORT"));
}

TEST(LaunchOptions, NamesTheBoundsOfNumbers) {
  EXPECT_EQ(refusal({"-np", "2", "-np", "3", "x"}), "-np is given more than once");
  EXPECT_EQ(refusal({"-np", "99999999999", "x"}),
            "-np is '99999999999': must be at most 2147483647");
  EXPECT_EQ(refusal({"-np", "2", "--port", "70000", "x"}),
            "--port is '70000': must be at most 65535");
  EXPECT_EQ(refusal({"-np", "2", "--port", "-1", "x"}), "--port must not be negative");
  EXPECT_EQ(refusal({"-np", "2", ""}), "the name of the program to run is empty");
}

TEST(LaunchOptions, SuggestsTheNearestOption) {
  EXPECT_EQ(refusal({"-np", "2", "--max-restart", "3", "x"}),
            "unknown option --max-restart; did you mean --max-restarts? (elasticrun --help lists "
            "them)");
  EXPECT_THAT(refusal({"--minnp=1", "-np", "2", "x"}),
              HasSubstr("unknown option --minnp; did you mean --min-np?"));
}

TEST(LaunchOptions, KnowsTheCommandsOfARunningJob) {
  EXPECT_EQ(refusal({"status"}),
            "-np is missing: how many workers to start; or did you mean elasticrun ctl status?");
  EXPECT_EQ(refusal({"./trainer"}), "-np is missing: how many workers to start");
}

TEST(LaunchOptions, PrintsInsteadOfLaunching) {
  const auto help = parse_launch_options({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_THAT(std::get<PrintAndExit>(help.value()).text, HasSubstr("--min-np"));
  const auto version = parse_launch_options({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_THAT(std::get<PrintAndExit>(version.value()).text, HasSubstr("elasticrun "));
  const auto environment = parse_launch_options({"--environment"});
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(std::get<PrintAndExit>(environment.value()).text, HasSubstr("| `ELASTIC_BACKEND` |"));
  const auto check = parse_launch_options({"--check-build"});
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(std::holds_alternative<CheckBuild>(check.value()));
}

// --- under srun -------------------------------------------------------------------------------

SlurmStep step_of(int task, int tasks) {
  SlurmStep step;
  step.id = "lab-7.0";
  step.task = task;
  step.tasks = tasks;
  step.node = "node" + std::to_string(task);
  for (int node = 0; node < tasks; ++node) step.nodes.push_back("node" + std::to_string(node));
  step.workers = 2;
  return step;
}

LaunchOptions parsed_in(const SlurmStep& step, const std::vector<std::string>& arguments) {
  const auto request = parse_launch_options(arguments, std::optional<SlurmStep>(step));
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.ok() ? std::get<LaunchOptions>(request.value()) : LaunchOptions();
}

std::string refusal_in(const Result<std::optional<SlurmStep>>& step,
                       const std::vector<std::string>& arguments) {
  const auto request = parse_launch_options(arguments, step);
  EXPECT_FALSE(request.ok());
  return request.status().message();
}

TEST(LaunchOptionsUnderSrun, TheFirstTaskHoldsTheServerOfAllTasks) {
  const LaunchOptions options = parsed_in(step_of(0, 3), {"./trainer"});
  EXPECT_EQ(options.np, 2);
  EXPECT_EQ(options.slots, 2);
  EXPECT_EQ(options.job_np, 6);
  EXPECT_EQ(options.max_np, 6);
  EXPECT_EQ(options.number, 0);
  EXPECT_EQ(options.host, "node0");
  EXPECT_EQ(options.bind, "0.0.0.0");
  EXPECT_EQ(options.shared_file, "./.elastic-lab-7.0.json");
  EXPECT_EQ(options.reached_from, "node1");
  EXPECT_FALSE(options.joins());
  EXPECT_TRUE(options.workers_ignore_signals);
}

TEST(LaunchOptionsUnderSrun, TheOtherTasksJoinItInTheOrderOfRanks) {
  const LaunchOptions options =
      parsed_in(step_of(2, 3), {"--slurm-folder", "/shared", "--min-np", "5", "./trainer"});
  EXPECT_EQ(options.connection_file, "/shared/.elastic-lab-7.0.json");
  EXPECT_TRUE(options.shared_file.empty());
  EXPECT_TRUE(options.joins());
  EXPECT_EQ(options.number, 2);
  EXPECT_EQ(options.slots, 2);
}

TEST(LaunchOptionsUnderSrun, WhatTheUserSaysCounts) {
  const LaunchOptions options = parsed_in(
      step_of(0, 3),
      {"-np", "1", "--slots", "4", "--bind", "10.0.0.1", "--host-name", "other", "./trainer"});
  EXPECT_EQ(options.np, 1);
  EXPECT_EQ(options.job_np, 3);
  EXPECT_EQ(options.max_np, 12);
  EXPECT_EQ(options.bind, "10.0.0.1");
  EXPECT_EQ(options.host, "other");
  EXPECT_EQ(parsed_in(step_of(0, 3), {"--max-np", "7", "./trainer"}).max_np, 7);
  EXPECT_THAT(refusal_in(std::optional<SlurmStep>(step_of(0, 3)),
                         {"--min-np", "7", "--max-np", "8", "./trainer"}),
              HasSubstr("6 workers"));
}

TEST(LaunchOptionsUnderSrun, ImpossibleNumbersAreRefusedInEveryTask) {
  for (const int task : {0, 1}) {
    for (const char* np : {"0", "2000000000"}) {
      EXPECT_THAT(refusal_in(std::optional<SlurmStep>(step_of(task, 3)), {"-np", np, "./trainer"}),
                  HasSubstr("-np must be at"));
    }
  }
}

TEST(LaunchOptionsUnderSrun, AGivenServerIsJoined) {
  SlurmStep element = step_of(0, 1);
  element.array_index = 4;
  const LaunchOptions options = parsed_in(element, {"--connection-file", "file", "./trainer"});
  EXPECT_EQ(options.connection_file, "file");
  EXPECT_EQ(options.np, 2);
  EXPECT_EQ(options.number, 4);
  const LaunchOptions joined =
      parsed_in(step_of(1, 3), {"--join", "head:1", "--secret-file", "s", "./trainer"});
  EXPECT_EQ(joined.join, "head:1");
  EXPECT_TRUE(joined.connection_file.empty());
  EXPECT_FALSE(joined.number);
}

TEST(LaunchOptionsUnderSrun, ATaskAloneIsAJobOfThisMachine) {
  const LaunchOptions options = parsed_in(step_of(0, 1), {"-np", "3", "./trainer"});
  EXPECT_EQ(options.job_np, 3);
  EXPECT_EQ(options.bind, "127.0.0.1");
  EXPECT_TRUE(options.shared_file.empty());
  EXPECT_FALSE(options.number);
}

TEST(LaunchOptionsUnderSrun, SlurmMayBeLeftOut) {
  const Result<std::optional<SlurmStep>> wrong =
      Status(Code::kInvalidArgument, "environment variable SLURM_PROCID is 'x'");
  EXPECT_THAT(refusal_in(wrong, {"-np", "1", "./trainer"}), HasSubstr("SLURM_PROCID"));
  const auto request = parse_launch_options({"--no-slurm", "-np", "1", "./trainer"}, wrong);
  ASSERT_TRUE(request.ok()) << request.status().message();
  const LaunchOptions options = parsed_in(step_of(1, 3), {"--no-slurm", "-np", "1", "./trainer"});
  EXPECT_FALSE(options.joins());
  EXPECT_FALSE(options.workers_ignore_signals);
}

TEST(LaunchOptionsUnderSrun, TasksWithDifferentRoomNeedNp) {
  SlurmStep step = step_of(0, 2);
  step.uneven = true;
  EXPECT_THAT(refusal_in(std::optional<SlurmStep>(step), {"./trainer"}), HasSubstr("give -np"));
  EXPECT_EQ(parsed_in(step, {"-np", "3", "./trainer"}).job_np, 6);
}

TEST(LaunchOptions, AConnectionFileHasAddressAndSecret) {
  EXPECT_TRUE(parsed({"--connection-file", "f", "-np", "1", "./trainer"}).joins());
  EXPECT_THAT(refusal({"--connection-file", "f", "--join", "h:1", "-np", "1", "./trainer"}),
              HasSubstr("leave out --join"));
  EXPECT_THAT(refusal({"--connection-file", "f", "--secret-file", "s", "-np", "1", "./trainer"}),
              HasSubstr("--secret-file"));
  EXPECT_THAT(refusal({"--connection-file", "f", "--port", "1", "-np", "1", "./trainer"}),
              HasSubstr("not with --connection-file"));
}

}  // namespace
}  // namespace elastic::launcher
