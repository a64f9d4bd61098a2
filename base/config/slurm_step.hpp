#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/environment.hpp"
#include "base/status.hpp"

namespace elastic {

/// The step of Slurm's srun that this process is a task of.
struct SlurmStep {
  /// "cluster-job.step", followed by the number of times that the job was requeued: no other step
  /// has it. Fit for a file's name.
  std::string id;
  int task = 0;   ///< this process, in the order of ranks
  int tasks = 1;  ///< of the step
  std::string node;
  std::vector<std::string> nodes;  ///< of the step
  /// Workers that this task has room for: its share of its node's GPUs, or else of its CPUs.
  int workers = 1;
  /// The other tasks need not have room for as many.
  bool uneven = false;
  std::optional<int> array_index;  ///< of the job in its array
};

/// Whether srun started this process. In a batch script, and in the shell of salloc, there is no
/// step. If RANK or ELASTIC_SLOT is set, an inner launcher started it, such as torchrun or
/// elasticrun.
bool is_slurm_task(const EnvironmentMap& environment);

/// None: this process is no task of srun's. kInvalidArgument names the variable that is wrong.
Result<std::optional<SlurmStep>> read_slurm_step(const EnvironmentMap& environment);

/// The number for one node of a list of such numbers for all nodes, such as "2(x3),1". None: the
/// list cannot be read, or is shorter.
std::optional<int> slurm_count_of(std::string_view counts, int node);

}  // namespace elastic
