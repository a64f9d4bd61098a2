// The steps of a program in which workers have different numbers of batches, and what must hold of
// them.
#include <algorithm>
#include <memory>
#include <string>

#include "contribution.hpp"
#include "model_worker.hpp"
#include "named_call.hpp"
#include "oracle.hpp"
#include "program.hpp"
#include "program_groups.hpp"
#include "uneven_batches.hpp"

namespace elastic::simulation {

/// The worker makes a named call for each of its batches, and joins.
Status Program::uneven_batches(std::uint64_t step) {
  const Scenario& scenario = process_.context().scenario;
  if (!is_uneven(scenario, step)) return {};
  const std::uint64_t mine = batches_of(scenario, step, process_.self());
  for (std::uint64_t batch = 0; batch < mine; ++batch) {
    if (Status status = sum_batch(step, batch); !status.ok()) return status;
    if (!groups_) continue;
    doing_ = "in a batch of a group";
    if (Status status = groups_->sum_batch(step, batch); !status.ok()) return status;
  }
  return join(step);
}

/// Those that have joined are contributors, with nothing in the sum. They do not see it, so it is
/// no part of the state.
Status Program::sum_batch(std::uint64_t step, std::uint64_t batch) {
  doing_ = "in a batch";
  const Scenario& scenario = process_.context().scenario;
  NamedCall& call = *open_.emplace_back(std::make_unique<NamedCall>(
      "batch" + std::to_string(batch), process_.self(), scenario.most_workers,
      salt_of(scenario.seed, step, kFirstBatch + batch), kBatchElements));
  Result<Contributors> result = Status();
  do {
    if (Status status = call.submit(worker_.coordinator()); !status.ok()) return status;
    result = call.wait();
  } while (calls_again(result.status()));
  if (!result.ok()) return result.status();
  std::string wrong;
  const Nodes counted = call.contribution().decode(0, wrong);
  const Nodes contributors = nodes_of(result.value());
  if (counts()) {
    Oracle& oracle = process_.context().oracle;
    const std::string which = call.name() + " of step " + std::to_string(step);
    oracle.returned_named(process_.self(), which, outcome_of(result));
    oracle.check_data(process_.self(), which, counted,
                      with_batch(scenario, step, batch, contributors), wrong);
  }
  open_.pop_back();
  compute(Milliseconds(2));
  return {};
}

/// Models Context::Impl::join.
Status Program::join(std::uint64_t step) {
  doing_ = "in join";
  const auto last = std::make_shared<int>(-1);
  const auto before = worker_.members();
  Result<Contributors> result = Status();
  do {
    worker_.coordinator().flush();
    const auto work = worker_.coordinator().join(last, [this] {
      worker_.count_join();
      return Status();
    });
    if (!work.ok()) return work.status();
    work.value()->wait();
    result = work.value()->outcome();
  } while (calls_again(result.status()));
  if (!result.ok()) return result.status();
  const bool is_stale = process_.context().scenario.mutation == Mutation::kStaleLastRank;
  check_last(step, result, (is_stale ? before->contributors() : result.value()).workers(), *last);
  return {};
}

/// The last one is the same on all members, and one of those with the most batches.
void Program::check_last(std::uint64_t step, const Result<Contributors>& result,
                         std::span<const WorkerId> workers, int rank) {
  const Scenario& scenario = process_.context().scenario;
  Oracle& oracle = process_.context().oracle;
  const auto at = static_cast<std::size_t>(rank);
  if (rank < 0 || at >= workers.size()) {
    if (counts()) oracle.wrong(process_.incarnation() + ": the last rank in join is no rank");
    return;
  }
  const Node last = node_of_id(workers[at]);
  note_result(last);
  if (!counts()) return;
  ++process_.context().tally.joins;
  Outcome outcome = outcome_of(result);
  outcome.text = "last " + incarnation_of(last);
  oracle.returned_named(process_.self(), "the join of step " + std::to_string(step), outcome);
  std::uint64_t most = 0;
  for (const WorkerId id : result.value().workers()) {
    most = std::max(most, batches_of(scenario, step, node_of_id(id)));
  }
  if (contains(outcome.contributors, last) && batches_of(scenario, step, last) == most) return;
  oracle.wrong(process_.incarnation() + ": " + incarnation_of(last) +
               " is the last in join, and others that contribute had more batches");
}

}  // namespace elastic::simulation
