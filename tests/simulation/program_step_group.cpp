// The steps of a program that commits their named calls together, and what must hold of them.
#include <memory>
#include <string>

#include "model_worker.hpp"
#include "oracle.hpp"
#include "program.hpp"
#include "step_tensors.hpp"

namespace elastic::simulation {

namespace {

/// The tensors have the same names in all steps, as in a training loop; the outcomes of each step
/// are its own.
std::string unit_name(std::uint64_t step) {
  return "step " + std::to_string(step) + " as one unit";
}

}  // namespace

/// The tensors become ready one after another, between other calls.
Status Program::step_as_unit(std::uint64_t number) {
  const Scenario& scenario = process_.context().scenario;
  coordinator::Coordinator& coordinator = worker_.coordinator();
  if (!unit_) {
    unit_ = std::make_unique<StepTensors>(coordinator, scenario.mutation == Mutation::kMixedStep);
  }
  for (unsigned i = 0; i < kOperationsPerStep; ++i) {
    doing_ = "adding to a step";
    const std::string name = "unit" + std::to_string(i);
    if (Status status = unit_->add(make_named(name, number, kFirstNamed + i)); !status.ok()) {
      return status;
    }
    compute(Milliseconds(2));
    if (Status status = unnamed_and_group_calls(number, i); !status.ok()) return status;
    compute(Milliseconds(2));
  }
  if (Status status = end_unit(number); !status.ok()) return status;
  if (groups_) {
    if (Status status = groups_->finish_named(number); !status.ok()) return status;
  }
  if (scenario.mutation != Mutation::kEarlyRelease) given_.clear();
  return {};
}

/// All tensors are sums over the same contributors, which are the same on all members.
Status Program::end_unit(std::uint64_t step) {
  doing_ = "waiting for a step";
  const Result<Contributors> result = unit_->wait();
  if (!result.ok()) return end_failed_unit(step, result.status());
  for (const NamedCall* const call : unit_->calls()) {
    note_result(check_named(*call, result.value()));
  }
  if (counts()) {
    if (unit_->sums_again()) ++process_.context().tally.summed_again;
    process_.context().oracle.returned_named(process_.self(), unit_name(step), outcome_of(result));
  }
  unit_->clear();
  return {};
}

/// A mismatch of one tensor ends the step on all members alike, without any result.
Status Program::end_failed_unit(std::uint64_t step, const Status& failure) {
  const Scenario& scenario = process_.context().scenario;
  if (failure.code() != Code::kMismatch || scenario.named_mismatch_in != step) return failure;
  if (counts()) {
    ++process_.context().tally.named_mismatches;
    Oracle& oracle = process_.context().oracle;
    oracle.returned_named(process_.self(), unit_name(step),
                          {0, {}, failure.code(), failure.message()});
    for (const NamedCall* const call : unit_->calls()) {
      if (call->is_untouched()) continue;
      oracle.wrong(process_.incarnation() + ": a step that failed has changed " + call->name());
    }
  }
  unit_->clear();
  note_result(3);
  leaves_with_error_ = process_.self() == scenario.culprit && scenario.culprit_ends;
  return leaves_with_error_ ? failure : Status();
}

}  // namespace elastic::simulation
