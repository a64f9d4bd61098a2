#include "program_groups.hpp"

#include <cstring>
#include <utility>

#include "model_worker.hpp"
#include "oracle.hpp"
#include "outcome.hpp"
#include "uneven_batches.hpp"

namespace elastic::simulation {

using coordinator::Members;
using coordinator::TensorRequest;

namespace {

// The calls of groups in a step, numbered as its others are.
constexpr std::uint64_t kNamedOfGroup = 300;
constexpr std::uint64_t kUnnamedOfGroup = 301;
constexpr std::uint64_t kFirstBatchOfGroup = 310;
constexpr std::uint64_t kKinds = 5;
constexpr std::size_t kMostElements = 300;

/// As Group::Impl::run has it: calls without a name agree on no more than that there is one.
TensorRequest unnamed_request() {
  return {{}, coordinator::kUnnamedRequest, ReduceOp::kSum, {{DType::kU8, 0}}};
}

}  // namespace

ModelGroup& ProgramGroups::group(std::size_t index) {
  std::unique_ptr<ModelGroup>& group = groups_[index];
  if (!group) group = std::make_unique<ModelGroup>(worker_, index);
  return *group;
}

Status ProgramGroups::start_named(std::uint64_t step, bool early) {
  const Scenario& scenario = process_.context().scenario;
  const std::uint64_t what = drawn(scenario.seed, step, kNamedOfGroup);
  const std::size_t index = what % kGroupRules;
  if ((process_.self() % 2 == 0) != early || !group(index).has_this_worker()) return {};
  return submit(make_named(index, "metric", step, kNamedOfGroup));
}

ProgramGroups::Named& ProgramGroups::make_named(std::size_t index, const std::string& name,
                                                std::uint64_t step, std::uint64_t call) {
  const Scenario& scenario = process_.context().scenario;
  const std::size_t elements = drawn(scenario.seed, step, call) / kGroupRules % kMostElements;
  return open_.emplace_back(
      Named{index, name,
            std::make_unique<Contribution>(process_.self(), scenario.most_workers,
                                           salt_of(scenario.seed, step, call), elements)});
}

Status ProgramGroups::submit(Named& call) {
  const TensorView tensor = call.contribution->view();
  const TensorRequest request{call.own_name,
                              coordinator::kAllreduceRequest,
                              ReduceOp::kSum,
                              {{tensor.dtype, tensor.count}}};
  auto work = group(call.group).submit(request, [tensor](const Members& /*members*/) {
    return std::make_unique<coordinator::AllreduceOperation>(
        std::vector<ConstTensorView>{tensor}, std::vector<TensorView>{tensor}, ReduceOp::kSum);
  });
  if (!work.ok()) return work.status();
  call.work = std::move(work).value();
  call.name = group(call.group).latest_name();
  return {};
}

Status ProgramGroups::finish_named(std::uint64_t step) {
  for (Named& call : open_) {
    Result<Contributors> outcome = Status();
    if (Status status = finish(call, outcome); !status.ok()) return status;
    note_returned(call.group, step, call.name, outcome);
    check_sum(call.name, *call.contribution, nodes_of(outcome.value()));
  }
  open_.clear();
  return {};
}

Status ProgramGroups::finish(Named& call, Result<Contributors>& outcome) {
  call.work->wait();
  while (calls_again_(call.work->outcome().status())) {
    if (Status status = submit(call); !status.ok()) return status;
    call.work->wait();
  }
  outcome = call.work->outcome();
  return outcome.status();
}

/// Those that have joined are contributors, with nothing in the sum.
Status ProgramGroups::sum_batch(std::uint64_t step, std::uint64_t batch) {
  const Scenario& scenario = process_.context().scenario;
  const std::uint64_t number = kFirstBatchOfGroup + batch;
  const std::size_t index = drawn(scenario.seed, step, number) % kGroupRules;
  if (!group(index).has_this_worker()) return {};
  Named& call = make_named(index, "batch" + std::to_string(batch), step, number);
  if (Status status = submit(call); !status.ok()) return status;
  Result<Contributors> outcome = Status();
  if (Status status = finish(call, outcome); !status.ok()) return status;
  note_returned(index, step, call.name, outcome);
  check_sum(call.name, *call.contribution,
            with_batch(scenario, step, batch, nodes_of(outcome.value())));
  open_.clear();
  return {};
}

Status ProgramGroups::blocking_call(std::uint64_t step) {
  const std::uint64_t what = drawn(process_.context().scenario.seed, step, kUnnamedOfGroup);
  const std::size_t index = what % kGroupRules;
  const std::uint64_t kind = what / kGroupRules;
  if (!group(index).has_this_worker()) return {};
  switch (kind % kKinds) {
    case 0:
      return barrier(index, step);
    case 1:
      return allgather(index, step);
    case 2:
      return broadcast(index, step, kind / kKinds);
    default:
      return allreduce(index, step);
  }
}

/// Models Group::Impl::run.
Status ProgramGroups::run(std::size_t index, std::uint64_t step, const ModelGroup::Make& make,
                          Result<Contributors>& outcome) {
  do {
    worker_.coordinator().flush();
    auto work = group(index).submit(unnamed_request(), make);
    if (!work.ok()) return work.status();
    work.value()->wait();
    outcome = work.value()->outcome();
    if (outcome.status().code() == Code::kTimeout) group(index).forget_latest();
  } while (calls_again_(outcome.status()));
  const Code error = outcome.status().code();
  if (outcome.ok() || error == Code::kRootLost) {
    note_returned(index, step, group(index).latest_name(), outcome);
  }
  return outcome.status();
}

Status ProgramGroups::allreduce(std::size_t index, std::uint64_t step) {
  const Scenario& scenario = process_.context().scenario;
  Contribution contribution(process_.self(), scenario.most_workers,
                            salt_of(scenario.seed, step, kUnnamedOfGroup),
                            drawn(scenario.seed, step, kUnnamedOfGroup) / 64 % kMostElements);
  const TensorView tensor = contribution.view();
  Result<Contributors> outcome = Status();
  const Status status = run(
      index, step,
      [tensor](const Members& /*members*/) {
        return std::make_unique<coordinator::AllreduceOperation>(
            std::vector<ConstTensorView>{tensor}, std::vector<TensorView>{tensor}, ReduceOp::kSum);
      },
      outcome);
  if (status.ok()) check_sum("an allreduce of a group", contribution, nodes_of(outcome.value()));
  return status;
}

Status ProgramGroups::barrier(std::size_t index, std::uint64_t step) {
  Result<Contributors> outcome = Status();
  return run(
      index, step,
      [](const Members& /*members*/) { return std::make_unique<coordinator::BarrierOperation>(); },
      outcome);
}

Status ProgramGroups::allgather(std::size_t index, std::uint64_t step) {
  const auto own = static_cast<std::int64_t>(process_.self());
  std::vector<std::int64_t> all;
  Result<Contributors> outcome = Status();
  const Status status = run(
      index, step,
      [&](const Members& /*members*/) {
        return std::make_unique<coordinator::AllgatherOperation>(
            ConstTensorView{&own, 1, DType::kI64, {}},
            [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
              all.resize(bytes.size() / sizeof(std::int64_t));
              if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
            });
      },
      outcome);
  if (!status.ok() || !counts()) return status;
  Nodes counted;
  for (const std::int64_t node : all) {
    if (node >= 0 && node < kMostWorkers) counted |= only(static_cast<Node>(node));
  }
  const std::string wrong =
      counted.count() == all.size() ? "" : " a block is no worker's, or there twice;";
  process_.context().oracle.check_data(process_.self(), "an allgather of a group", counted,
                                       nodes_of(outcome.value()), wrong);
  return status;
}

/// From a worker of the group that may have left.
Status ProgramGroups::broadcast(std::size_t index, std::uint64_t step, std::uint64_t root) {
  const std::vector<WorkerId>& workers = group(index).workers();
  const WorkerId from = workers[root % workers.size()];
  std::int64_t value = process_.self();
  Result<Contributors> outcome = Status();
  const Status status = run(
      index, step,
      [&value, from](const Members& members) {
        return std::make_unique<coordinator::BroadcastOperation>(
            TensorView{&value, 1, DType::kI64, {}},
            coordinator::CallRoot(from, members, /*renewed=*/true));
      },
      outcome);
  if (status.code() == Code::kRootLost) return {};
  if (status.ok() && counts() && value != node_of_id(from)) {
    process_.context().oracle.wrong(process_.incarnation() +
                                    ": a broadcast of a group has not brought the root's data");
  }
  return status;
}

void ProgramGroups::note_returned(std::size_t index, std::uint64_t step, const std::string& name,
                                  const Result<Contributors>& outcome) {
  if (!counts()) return;
  process_.context().oracle.returned_in_group(process_.self(), index,
                                              name + " in step " + std::to_string(step),
                                              *worker_.roster(), outcome_of(outcome));
}

void ProgramGroups::check_sum(const std::string& what, const Contribution& contribution,
                              const Nodes& expected) {
  if (!counts()) return;
  std::string wrong;
  const Nodes counted = contribution.decode(0, wrong);
  process_.context().oracle.check_data(process_.self(), what, counted, expected, wrong);
}

}  // namespace elastic::simulation
