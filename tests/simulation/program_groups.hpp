#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contribution.hpp"
#include "group_rules.hpp"
#include "model_group.hpp"
#include "process.hpp"

namespace elastic::simulation {

class ModelWorker;

/// The calls of groups of a program, between its other calls, and what must hold of their results.
/// A worker skips the calls of groups that it is not in.
///
/// The program's own thread alone uses it.
class ProgramGroups {
 public:
  /// Whether a call that failed has left nothing behind, and is to be made again.
  using CallsAgain = std::function<bool(const Status& failure)>;
  ProgramGroups(ModelWorker& worker, Process& process, CallsAgain calls_again)
      : worker_(worker), process_(process), calls_again_(std::move(calls_again)) {}

  /// Starts the named call of a step on one half of its group's members, the `early` ones or the
  /// others: the call may wait for a member while that one waits for all in a call of the job.
  Status start_named(std::uint64_t step, bool early);
  /// Waits for it.
  Status finish_named(std::uint64_t step);
  /// A batch of a step in which the workers have different numbers of them (uneven_batches.hpp).
  Status sum_batch(std::uint64_t step, std::uint64_t batch);
  /// The call of the step that has no name: a collective of some kind.
  Status blocking_call(std::uint64_t step);

 private:
  struct Named {
    std::size_t group = 0;
    std::string own_name;  ///< within the group
    std::unique_ptr<Contribution> contribution;
    std::shared_ptr<detail::WorkState> work = nullptr;
    std::string name = {};  ///< in the job
  };

  ModelGroup& group(std::size_t index);
  Named& make_named(std::size_t index, const std::string& name, std::uint64_t step,
                    std::uint64_t call);
  Status submit(Named& call);
  Status finish(Named& call, Result<Contributors>& outcome);
  Status run(std::size_t index, std::uint64_t step, const ModelGroup::Make& make,
             Result<Contributors>& outcome);
  Status allreduce(std::size_t index, std::uint64_t step);
  Status barrier(std::size_t index, std::uint64_t step);
  Status allgather(std::size_t index, std::uint64_t step);
  Status broadcast(std::size_t index, std::uint64_t step, std::uint64_t root);
  void note_returned(std::size_t index, std::uint64_t step, const std::string& name,
                     const Result<Contributors>& outcome);
  void check_sum(const std::string& what, const Contribution& contribution, const Nodes& expected);
  bool counts() const { return !process_.over(); }

  ModelWorker& worker_;
  Process& process_;
  const CallsAgain calls_again_;
  std::array<std::unique_ptr<ModelGroup>, kGroupRules> groups_;
  std::vector<Named> open_;
};

}  // namespace elastic::simulation
