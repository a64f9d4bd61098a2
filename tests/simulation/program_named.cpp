// The named calls of a program, and what must hold of their results.
#include <string>
#include <thread>
#include <utility>

#include "model_worker.hpp"
#include "named_call.hpp"
#include "oracle.hpp"
#include "program.hpp"

namespace elastic::simulation {

namespace {

/// The call that loses its handle, in runs that drop one.
constexpr std::uint64_t kDropped = 1;

}  // namespace

/// Metrics, for example: named calls that are independent of steps, while the worker is a member.
void Program::call_in_background() {
  const Scenario& scenario = process_.context().scenario;
  const std::int64_t salt = salt_of(scenario.seed, 0, 1000);
  for (;;) {
    NamedCall call("background", process_.self(), scenario.most_workers, salt, 4);
    const Status submitted = call.submit(worker_.coordinator());
    if (submitted.code() == Code::kInvalidArgument && scenario.uneven) {
      compute(Milliseconds(8));  // the program's own thread is in join
      continue;
    }
    if (!submitted.ok()) {
      if (scenario.mutation == Mutation::kBusyThread && counts()) continue;
      return;
    }
    const Result<Contributors> result = call.wait();
    if (is_late(result.status())) continue;
    if (!result.ok()) {
      if (scenario.mutation == Mutation::kBusyThread && counts()) continue;
      return;
    }
    check_in_background(call, result.value());
    compute(Milliseconds(8));
  }
}

void Program::join_background() {
  if (background_.joinable()) background_.join();
}

/// The `call`-th named call of a step.
std::unique_ptr<NamedCall> Program::make_named(const std::string& name, std::uint64_t step,
                                               std::uint64_t call) const {
  const Scenario& scenario = process_.context().scenario;
  auto made = std::make_unique<NamedCall>(name, process_.self(), scenario.most_workers,
                                          salt_of(scenario.seed, step, call),
                                          drawn(scenario.seed, step, call) % 200);
  const bool is_first = call == kFirstNamed;
  if (is_first && scenario.named_mismatch_in == step && process_.self() == scenario.culprit) {
    made->differ(scenario.named_mismatch);
  }
  return made;
}

Status Program::submit_named(const std::string& name, std::uint64_t step, std::uint64_t call) {
  doing_ = "submitting";
  const Scenario& scenario = process_.context().scenario;
  std::unique_ptr<NamedCall> made = make_named(name, step, call);
  if (Status status = made->submit(worker_.coordinator()); !status.ok()) return status;
  if (scenario.drops_works && call == kFirstNamed + kDropped) {
    made->drop();
    dropped_.push_back(std::move(made));
  } else {
    open_.push_back(std::move(made));
  }
  return {};
}

Status Program::wait_for_named(std::uint64_t step) {
  for (const auto& call : open_) {
    doing_ = "waiting for named calls";
    Result<Contributors> result = call->wait();
    while (calls_again(result.status())) {
      if (Status status = call->submit(worker_.coordinator()); !status.ok()) return status;
      result = call->wait();
    }
    if (Status status = end_named(*call, step, result); !status.ok()) return status;
  }
  open_.clear();
  return {};
}

Status Program::end_named(const NamedCall& call, std::uint64_t step,
                          const Result<Contributors>& result) {
  Oracle& oracle = process_.context().oracle;
  const Scenario& scenario = process_.context().scenario;
  if (result.ok()) {
    if (counts()) oracle.returned_named(process_.self(), call.name(), outcome_of(result));
    note_result(check_named(call, result.value()));
    return {};
  }
  if (result.status().code() != Code::kMismatch || scenario.named_mismatch_in != step) {
    return result.status();
  }
  if (counts()) {
    ++process_.context().tally.named_mismatches;
    Outcome outcome = outcome_of(result);
    outcome.text = result.status().message();
    oracle.returned_named(process_.self(), call.name(), outcome);
    if (!call.is_untouched()) {
      oracle.wrong(process_.incarnation() + ": a call that failed has changed its tensor");
    }
  }
  note_result(3);
  leaves_with_error_ = process_.self() == scenario.culprit && scenario.culprit_ends;
  return leaves_with_error_ ? result.status() : Status();
}

/// Checks the result, and returns the workers that it counts.
Nodes Program::check_named(const NamedCall& call, const Contributors& contributors) const {
  std::string wrong;
  const Nodes counted = call.contribution().decode(0, wrong);
  if (counts()) {
    process_.context().oracle.check_data(process_.self(), call.name(), counted,
                                         nodes_of(contributors), wrong);
  }
  return counted;
}

/// In uneven runs members may have joined: they are contributors, with nothing in the sum.
void Program::check_in_background(const NamedCall& call, const Contributors& contributors) const {
  if (!process_.context().scenario.uneven) return (void)check_named(call, contributors);
  std::string wrong;
  const Nodes named = nodes_of(contributors);
  const Nodes counted = call.contribution().decode(0, wrong);
  if (!counts()) return;
  process_.context().oracle.check_data(process_.self(), call.name(), counted, named & counted,
                                       wrong);
}

/// The calls whose handles were dropped are complete: nothing says how, but their tensors do.
Status Program::end_dropped() {
  if (const Status closed = worker_.lane(1).closed(); !closed.ok()) return closed;
  for (const auto& call : dropped_) {
    std::string wrong;
    const Nodes counted = call->contribution().decode(0, wrong);
    if (counts() && !wrong.empty()) {
      process_.context().oracle.wrong(process_.incarnation() + ", " + call->name() + ":" + wrong);
    }
    note_result(counted);
  }
  dropped_.clear();
  return {};
}

}  // namespace elastic::simulation
