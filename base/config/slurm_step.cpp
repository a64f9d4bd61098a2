#include "base/config/slurm_step.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/config/node_list.hpp"
#include "base/config/number_reader.hpp"
#include "base/config/rank_variables.hpp"

namespace elastic {

namespace {

std::string text_of(const EnvironmentMap& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::string id_of(const EnvironmentMap& environment) {
  std::string id;
  if (const auto cluster = text_of(environment, "SLURM_CLUSTER_NAME"); !cluster.empty()) {
    id = cluster + "-";
  }
  id += text_of(environment, "SLURM_JOB_ID") + "." + text_of(environment, "SLURM_STEP_ID");
  if (const auto restarts = text_of(environment, "SLURM_RESTART_COUNT"); !restarts.empty()) {
    id += "." + restarts;
  }
  std::replace(id.begin(), id.end(), '/', '_');
  return id;
}

/// Sets what the task has room for. A node's tasks share the node alike.
void read_room(NumberReader& numbers, const EnvironmentMap& environment, SlurmStep& step) {
  const int own_gpus = numbers.get({"SLURM_GPUS_ON_NODE"}, 0, 0);
  const int own_cpus = numbers.get({"SLURM_CPUS_ON_NODE"}, 1, 1);
  const int cpus_per_task = numbers.get({"SLURM_CPUS_PER_TASK"}, 1, 0);
  const std::string tasks = text_of(environment, "SLURM_STEP_TASKS_PER_NODE");
  const std::string cpus = text_of(environment, "SLURM_JOB_CPUS_PER_NODE");
  const auto room_on = [&](int node, int cpus_of_node) {
    const int sharing = slurm_count_of(tasks, node).value_or(1);
    if (own_gpus == 0 && cpus_per_task > 0) return cpus_per_task;
    return std::max(1, (own_gpus > 0 ? own_gpus : cpus_of_node) / sharing);
  };
  step.workers = room_on(numbers.get({"SLURM_NODEID"}, 0, 0), own_cpus);
  for (int node = 0; node < static_cast<int>(step.nodes.size()); ++node) {
    const int room = room_on(node, slurm_count_of(cpus, node).value_or(own_cpus));
    step.uneven = step.uneven || room != step.workers;
  }
}

}  // namespace

bool is_slurm_task(const EnvironmentMap& environment) {
  return environment.contains("SLURM_PROCID") && environment.contains("SLURM_STEP_ID") &&
         !environment.contains("RANK") && !environment.contains("ELASTIC_SLOT");
}

Result<std::optional<SlurmStep>> read_slurm_step(const EnvironmentMap& environment) {
  if (!is_slurm_task(environment)) return std::optional<SlurmStep>();
  SlurmStep step;
  NumberReader numbers(environment);
  numbers.get({"SLURM_JOB_ID"}, 1, 1);
  step.id = id_of(environment);
  step.task = numbers.get(kSlurmVariables.rank, 0, 0);
  step.tasks = numbers.get(kSlurmVariables.np, 1, 1);
  const auto nodes =
      parse_node_list(text_of(environment, "SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST");
  if (!nodes.ok()) return nodes.status();
  step.nodes = nodes.value();
  step.node = text_of(environment, "SLURMD_NODENAME");
  read_room(numbers, environment, step);
  if (environment.contains("SLURM_ARRAY_TASK_ID")) {
    step.array_index = numbers.get({"SLURM_ARRAY_TASK_ID"}, 0, 0);
  }
  if (!numbers.status().ok()) return numbers.status();
  if (step.task >= step.tasks) {
    return Status(Code::kInvalidArgument, "environment variable SLURM_PROCID is " +
                                              std::to_string(step.task) + ", and " +
                                              "SLURM_STEP_NUM_TASKS says that the step has " +
                                              std::to_string(step.tasks) + " tasks");
  }
  return std::optional<SlurmStep>(std::move(step));
}

std::optional<int> slurm_count_of(std::string_view counts, int node) {
  const char* at = counts.data();
  const char* const end = at + counts.size();
  while (at < end) {
    int count = 0;
    auto read = std::from_chars(at, end, count);
    if (read.ec != std::errc() || count < 1) return std::nullopt;
    int nodes = 1;
    if (end - read.ptr > 2 && read.ptr[0] == '(' && read.ptr[1] == 'x') {
      read = std::from_chars(read.ptr + 2, end, nodes);
      if (read.ec != std::errc() || read.ptr == end || *read.ptr != ')') return std::nullopt;
      ++read.ptr;
    }
    if (node < nodes) return count;
    node -= nodes;
    if (read.ptr == end || *read.ptr != ',') return std::nullopt;
    at = read.ptr + 1;
  }
  return std::nullopt;
}

}  // namespace elastic
