#include "base/config/slurm_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// As `srun --nodes=3 --ntasks-per-node=1 --cpus-per-task=2` has it in its second task.
const EnvironmentMap kTask = {{"SLURM_CLUSTER_NAME", "lab"},
                              {"SLURM_JOB_ID", "12"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_PROCID", "1"},
                              {"SLURM_NODEID", "1"},
                              {"SLURM_STEP_NUM_TASKS", "3"},
                              {"SLURM_NTASKS", "3"},
                              {"SLURM_STEP_NODELIST", "node[0-2]"},
                              {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                              {"SLURM_JOB_CPUS_PER_NODE", "2(x3)"},
                              {"SLURM_CPUS_ON_NODE", "2"},
                              {"SLURM_CPUS_PER_TASK", "2"},
                              {"SLURMD_NODENAME", "node1"}};

EnvironmentMap with(const EnvironmentMap& changes) {
  EnvironmentMap environment = kTask;
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

EnvironmentMap without(const std::string& name, const EnvironmentMap& changes = {}) {
  EnvironmentMap environment = with(changes);
  environment.erase(name);
  return environment;
}

SlurmStep read(const EnvironmentMap& environment) {
  const auto step = read_slurm_step(environment);
  EXPECT_TRUE(step.ok() && step.value()) << step.status().message();
  return step.ok() ? step.value().value_or(SlurmStep()) : SlurmStep();
}

std::string refusal(const EnvironmentMap& environment) {
  const auto step = read_slurm_step(environment);
  EXPECT_FALSE(step.ok());
  return step.status().message();
}

TEST(SlurmStep, IsReadFromTheVariablesOfATask) {
  const SlurmStep step = read(kTask);
  EXPECT_EQ(step.id, "lab-12.0");
  EXPECT_EQ(step.task, 1);
  EXPECT_EQ(step.tasks, 3);
  EXPECT_EQ(step.node, "node1");
  EXPECT_THAT(step.nodes, ElementsAre("node0", "node1", "node2"));
  EXPECT_EQ(step.workers, 2);
  EXPECT_FALSE(step.uneven);
  EXPECT_FALSE(step.array_index);
}

TEST(SlurmStep, ARequeuedJobHasAnotherIdForTheSameStep) {
  EXPECT_EQ(read(with({{"SLURM_RESTART_COUNT", "2"}})).id, "lab-12.0.2");
}

TEST(SlurmStep, TheIdIsFitForAFileName) {
  EXPECT_EQ(read(with({{"SLURM_CLUSTER_NAME", "../a"}})).id, ".._a-12.0");
}

TEST(SlurmStep, ABatchScriptAndTheShellOfSallocAreNoTasks) {
  for (const auto& environment :
       {EnvironmentMap(), without("SLURM_STEP_ID"), without("SLURM_PROCID"), with({{"RANK", "0"}}),
        with({{"ELASTIC_SLOT", "0"}})}) {
    const auto step = read_slurm_step(environment);
    EXPECT_TRUE(step.ok() && !step.value());
  }
}

TEST(SlurmStep, WithoutCpusPerTaskTheTasksOfANodeShareItsCpus) {
  const auto room = [](const std::string& cpus, const std::string& tasks) {
    return read(without("SLURM_CPUS_PER_TASK", {{"SLURM_CPUS_ON_NODE", cpus},
                                                {"SLURM_JOB_CPUS_PER_NODE", cpus + "(x3)"},
                                                {"SLURM_STEP_TASKS_PER_NODE", tasks + "(x3)"}}))
        .workers;
  };
  EXPECT_EQ(room("8", "1"), 8);
  EXPECT_EQ(room("8", "2"), 4);
  EXPECT_EQ(room("1", "2"), 1);
}

TEST(SlurmStep, AGpuIsForOneWorker) {
  EXPECT_EQ(read(with({{"SLURM_GPUS_ON_NODE", "4"}})).workers, 4);
  EXPECT_EQ(
      read(with({{"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}})).workers, 2);
  EXPECT_EQ(read(with({{"SLURM_GPUS_ON_NODE", "0"}})).workers, 2);
}

TEST(SlurmStep, TellsThatTasksHaveRoomForDifferentNumbers) {
  const auto uneven = [](const std::string& cpus, const std::string& tasks) {
    return read(without("SLURM_CPUS_PER_TASK",
                        {{"SLURM_JOB_CPUS_PER_NODE", cpus}, {"SLURM_STEP_TASKS_PER_NODE", tasks}}))
        .uneven;
  };
  EXPECT_TRUE(uneven("2(x2),4", "1(x3)"));
  EXPECT_TRUE(uneven("2(x3)", "1(x2),2"));
  EXPECT_FALSE(uneven("2(x2),4", "1(x2),2"));
  EXPECT_FALSE(uneven("2(x3)", "1(x3)"));
  EXPECT_FALSE(read(with({{"SLURM_JOB_CPUS_PER_NODE", "2(x2),4"}})).uneven);
}

TEST(SlurmStep, AnElementOfAnArrayHasAnIndex) {
  EXPECT_EQ(read(with({{"SLURM_ARRAY_TASK_ID", "5"}})).array_index, 5);
}

TEST(SlurmStep, NamesTheVariableThatIsWrong) {
  for (const char* name : {"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NODEID",
                           "SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_GPUS_ON_NODE",
                           "SLURM_ARRAY_TASK_ID", "SLURM_STEP_NODELIST"}) {
    EXPECT_THAT(refusal(with({{name, "2x["}})), HasSubstr(std::string(name) + " is '2x['"));
  }
  EXPECT_THAT(refusal(without("SLURM_STEP_NODELIST")), HasSubstr("SLURM_STEP_NODELIST"));
  EXPECT_THAT(refusal(with({{"SLURM_PROCID", "3"}})), HasSubstr("SLURM_PROCID is 3"));
}

TEST(SlurmStep, ReadsTheNumberOfOneNode) {
  EXPECT_EQ(slurm_count_of("2(x2),1", 0), 2);
  EXPECT_EQ(slurm_count_of("2(x2),1", 1), 2);
  EXPECT_EQ(slurm_count_of("2(x2),1", 2), 1);
  for (const char* wrong : {"", "x", "2(", "2(x", "2(x2", "2;1", "2(x2),", "0(x9)"}) {
    EXPECT_FALSE(slurm_count_of(wrong, 5)) << wrong;
  }
}

}  // namespace
}  // namespace elastic
