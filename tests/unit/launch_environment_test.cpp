#include "base/config/launch_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic {
namespace {

using Launcher = LaunchEnvironment::Launcher;

LaunchEnvironment read(const EnvironmentMap& environment) {
  const auto launch = read_launch_environment(environment);
  EXPECT_TRUE(launch.ok()) << launch.status().message();
  return launch.ok() ? launch.value() : LaunchEnvironment();
}

std::string refusal(const EnvironmentMap& environment) {
  const auto launch = read_launch_environment(environment);
  EXPECT_FALSE(launch.ok());
  return launch.status().message();
}

const EnvironmentMap kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"PMIX_NAMESPACE", "1234"},          {"PMIX_SERVER_URI2", "1234.0;tcp4://127.0.0.1:99"}};

TEST(LaunchEnvironment, AloneIsAJobOfOneWithItsOwnServer) {
  const auto launch = read({});
  EXPECT_EQ(launch.launcher, Launcher::kNone);
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.np, 1);
  EXPECT_TRUE(launch.hosts_server());
}

TEST(LaunchEnvironment, ReadsWhatElasticrunSets) {
  const auto launch = read({{"ELASTIC_RENDEZVOUS", "127.0.0.1:4711"},
                            {"ELASTIC_SLOT", "3"},
                            {"RANK", "3"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "3"},
                            {"LOCAL_WORLD_SIZE", "4"}});
  EXPECT_EQ(launch.launcher, Launcher::kElasticrun);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.np, 4);
  EXPECT_EQ(launch.local_rank, 3);
  EXPECT_EQ(launch.rendezvous, "127.0.0.1:4711");
  EXPECT_FALSE(launch.hosts_server());
}

TEST(LaunchEnvironment, AnAddedWorkersSlotMayBeBeyondTheWorldAtTheStart) {
  EXPECT_EQ(read({{"ELASTIC_RENDEZVOUS", "h:1"}, {"ELASTIC_SLOT", "5"}, {"WORLD_SIZE", "4"}}).rank,
            5);
}

TEST(LaunchEnvironment, AnAddressAloneWishesForNoRank) {
  EXPECT_EQ(read({{"ELASTIC_RENDEZVOUS", "h:1"}}).rank, -1);
}

TEST(LaunchEnvironment, ReadsOpenMpi) {
  const auto launch = read(kOpenMpi);
  EXPECT_EQ(launch.launcher, Launcher::kOpenMpi);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.np, 4);
  EXPECT_EQ(launch.local_rank, 2);
  EXPECT_EQ(launch.local_np, 4);
  EXPECT_TRUE(launch.hosts_server());
  EXPECT_NE(launch.launch_key, "");
}

TEST(LaunchEnvironment, AGivenServerIsUsedUnderMpirunToo) {
  auto environment = kOpenMpi;
  environment["ELASTIC_RENDEZVOUS"] = "head:4711";
  environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  const auto launch = read(environment);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_FALSE(launch.hosts_server());
}

TEST(LaunchEnvironment, ElasticrunInsideMpirunCounts) {
  auto environment = kOpenMpi;
  environment["ELASTIC_RENDEZVOUS"] = "127.0.0.1:1";
  environment["ELASTIC_SLOT"] = "1";
  environment["WORLD_SIZE"] = "2";
  const auto launch = read(environment);
  EXPECT_EQ(launch.launcher, Launcher::kElasticrun);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.np, 2);
}

TEST(LaunchEnvironment, ReadsHydra) {
  const auto launch = read(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(launch.launcher, Launcher::kMpich);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.np, 2);
  EXPECT_EQ(launch.launch_key, "");
}

TEST(LaunchEnvironment, SeveralHostsNeedAGivenServer) {
  auto environment = kOpenMpi;
  environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_THAT(refusal(environment), testing::HasSubstr("several hosts"));
}

TEST(LaunchEnvironment, SeveralRanksWithoutAServerAreNotSeveralJobs) {
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), testing::HasSubstr("WORLD_SIZE is 2"));
}

const EnvironmentMap kSlurm = {{"SLURM_JOB_ID", "7"},
                               {"SLURM_STEP_ID", "0"},
                               {"SLURM_CLUSTER_NAME", "lab"},
                               {"SLURM_PROCID", "1"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_NTASKS", "2"},
                               {"SLURM_LOCALID", "1"},
                               {"SLURM_STEP_NUM_NODES", "1"},
                               {"SLURM_NNODES", "1"},
                               {"SLURM_NODEID", "0"},
                               {"SLURM_STEP_TASKS_PER_NODE", "2"}};

TEST(LaunchEnvironment, ReadsSlurm) {
  const auto launch = read(kSlurm);
  EXPECT_EQ(launch.launcher, Launcher::kSlurm);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.np, 2);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_np, 2);
  EXPECT_TRUE(launch.hosts_server());
  EXPECT_FALSE(launch.under_mpirun());
  auto other_step = kSlurm;
  other_step["SLURM_STEP_ID"] = "1";
  EXPECT_NE(read(other_step).launch_key, launch.launch_key);
}

TEST(LaunchEnvironment, ASlurmStepHasFewerTasksThanItsAllocation) {
  auto environment = kSlurm;
  environment["SLURM_NTASKS"] = "8";
  environment["SLURM_NNODES"] = "4";
  EXPECT_EQ(read(environment).np, 2);
}

TEST(LaunchEnvironment, ASlurmStepOnSeveralNodesNeedsAGivenServer) {
  auto environment = kSlurm;
  environment["SLURM_STEP_NUM_NODES"] = "3";
  environment["SLURM_STEP_NUM_TASKS"] = "5";
  environment["SLURM_STEP_TASKS_PER_NODE"] = "2(x2),1";
  EXPECT_THAT(refusal(environment),
              testing::AllOf(testing::HasSubstr("several hosts"),
                             testing::HasSubstr("srun --ntasks-per-node=1 elasticrun"),
                             testing::HasSubstr("ELASTIC_BIND")));
  environment["ELASTIC_RENDEZVOUS"] = "head:4711";
  EXPECT_EQ(read(environment).local_np, 2);
  environment["SLURM_NODEID"] = "1";
  EXPECT_EQ(read(environment).local_np, 2);
  environment["SLURM_NODEID"] = "2";
  EXPECT_EQ(read(environment).local_np, 1);
  for (const char* unreadable : {"", "x", "2(", "2(x", "2(x2", "2;1"}) {
    environment["SLURM_STEP_TASKS_PER_NODE"] = unreadable;
    EXPECT_EQ(read(environment).local_np, 1) << unreadable;
  }
}

TEST(LaunchEnvironment, SlurmWithPmiServesMpi) {
  auto environment = kSlurm;
  environment["PMIX_RANK"] = "1";
  environment["PMIX_NAMESPACE"] = "slurm.pmix.7.0";
  EXPECT_TRUE(read(environment).under_mpirun());
  environment = kSlurm;
  environment["PMI_RANK"] = "1";
  environment["PMI_SIZE"] = "2";
  EXPECT_EQ(read(environment).launcher, Launcher::kSlurm);
  EXPECT_NE(read(environment).launch_key, "");
}

TEST(LaunchEnvironment, MpirunThatUsesSlurmItselfCounts) {
  auto environment = kSlurm;
  for (const auto& [name, value] : kOpenMpi) environment[name] = value;
  EXPECT_EQ(read(environment).launcher, Launcher::kOpenMpi);
  environment = kSlurm;
  for (const auto& [name, value] :
       EnvironmentMap{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "3"}}) {
    environment[name] = value;
  }
  EXPECT_EQ(read(environment).launcher, Launcher::kMpich);
  EXPECT_EQ(read(environment).rank, 3);
}

TEST(LaunchEnvironment, TorchrunInsideSlurmIsNotAJobOfOne) {
  auto environment = kSlurm;
  environment["RANK"] = "0";
  environment["WORLD_SIZE"] = "8";
  EXPECT_THAT(refusal(environment), testing::HasSubstr("WORLD_SIZE is 8"));
}

TEST(LaunchEnvironment, AnAllocationIsNotAStep) {
  EXPECT_THAT(refusal({{"SLURM_NTASKS", "2"}}), testing::HasSubstr("SLURM_NTASKS is 2"));
  EXPECT_THAT(refusal({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}),
              testing::HasSubstr("srun"));
  EXPECT_EQ(read({{"SLURM_NTASKS", "1"}}).np, 1);
  EXPECT_EQ(read({{"SLURM_NTASKS", "2"}, {"WORLD_SIZE", "1"}}).np, 1);
  EXPECT_EQ(read({{"SLURM_NTASKS", "2"}, {"ELASTIC_RENDEZVOUS", "h:1"}}).rank, -1);
}

TEST(LaunchEnvironment, PmixAloneDoesNotSayHowManyThereAre) {
  EXPECT_THAT(refusal({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "x"}}),
              testing::AllOf(testing::HasSubstr("PMIX_RANK is 0"),
                             testing::HasSubstr("ELASTIC_RENDEZVOUS is not set")));
  EXPECT_EQ(read({{"PMIX_RANK", "0"}, {"WORLD_SIZE", "1"}}).np, 1);
}

TEST(LaunchEnvironment, AJobsNameOrSecretWithoutItsServerIsNotAJobOfOne) {
  for (const char* variable : {"ELASTIC_JOB", "ELASTIC_SECRET_FILE"}) {
    EXPECT_THAT(
        refusal({{variable, "x"}}),
        testing::AllOf(testing::StartsWith(std::string(variable) + " is set"),
                       testing::HasSubstr("but ELASTIC_RENDEZVOUS is not set: start the workers")));
    EXPECT_EQ(read({{variable, "x"}, {"WORLD_SIZE", "1"}}).np, 1);
    EXPECT_EQ(read({{variable, ""}}).np, 1);
    EXPECT_EQ(read({{variable, "x"}, {"ELASTIC_RENDEZVOUS", "h:1"}}).rank, -1);
    auto environment = kOpenMpi;  // a job of its own beside another one of the same mpirun
    environment[variable] = "x";
    EXPECT_TRUE(read(environment).hosts_server());
  }
}

TEST(LaunchEnvironment, NamesWhatIsWrong) {
  EXPECT_THAT(refusal({{"OMPI_COMM_WORLD_RANK", "x"}}),
              testing::HasSubstr("OMPI_COMM_WORLD_RANK is 'x'"));
  EXPECT_THAT(refusal({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}), testing::HasSubstr("rank 2 of 2"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
              testing::HasSubstr("WORLD_SIZE is '0'"));
}

}  // namespace
}  // namespace elastic
