// The unnamed calls of a program, and what must hold of their results.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "contribution.hpp"
#include "model_worker.hpp"
#include "mutated_call.hpp"
#include "oracle.hpp"
#include "program.hpp"

namespace elastic::simulation {

using coordinator::Operation;

Status Program::unnamed_call(std::uint64_t step, std::uint64_t call) {
  const Scenario& scenario = process_.context().scenario;
  const std::uint64_t what = drawn(scenario.seed, step, call);
  const std::uint64_t length = what / 1000;
  const bool wrong = call == 0 && (scenario.mismatch_in == step || scenario.exception_in == step);
  const std::uint64_t kind = what % 20;
  // A third of the runs have the calls with a result that differs by rank, too.
  if (!wrong && scenario.seed % 3 == 0) {
    if (kind == 10) return alltoall(step, call);
    if (kind == 11) return gather(step, call);
    if (kind == 12) return scan(step, call);
  }
  switch (wrong ? 19 : kind) {
    case 0:
      return broadcast(step, call, 0);
    case 1:  // which need not be a member
      return broadcast(step, call, id_of(static_cast<Node>(length % 6)));
    case 2:
      return barrier();
    case 3:
      return allgather(step, call);
    case 4:
      return reduce_scatter(step, call);
    case 5:
    case 6:
      return allreduce(step, call, length % 4000, false);
    case 7:
    case 8:
    case 9:
    case 10:
      return allreduce(step, call, length % 400, true);
    default:
      return allreduce(step, call, length % 40, false);
  }
}

/// The call has left nothing behind: the program makes it again, or gives up and leaves.
bool Program::calls_again(const Status& failure) {
  if (!is_late(failure)) return false;
  if (counts()) ++process_.context().tally.late_calls;
  leaves_with_error_ = process_.context().scenario.ends_after_timeout;
  return !leaves_with_error_;
}

bool Program::forgets_timeouts() const {
  return process_.context().scenario.mutation == Mutation::kForgottenTimeout;
}

/// It found no view to begin in. A call that had begun by then has closed its lane: another one
/// fails at once.
bool Program::is_late(const Status& failure) const {
  return failure.code() == Code::kTimeout && worker_.is_in() && worker_.lane(0).closed().ok() &&
         worker_.lane(1).closed().ok();
}

Status Program::run_operation(Operation& operation, const std::string& what,
                              Result<Contributors>& outcome) {
  doing_ = "in an unnamed call";
  coordinator::Lane& lane = worker_.lane(0);
  worker_.coordinator().flush();
  {
    const coordinator::Lane::Turn turn = lane.take_turn();
    do {
      outcome = forgets_timeouts() ? run_without_leaving(lane, operation, worker_.view_timeout())
                                   : lane.run(turn, operation, worker_.view_timeout());
    } while (!forgets_timeouts() && calls_again(outcome.status()));
    const Code error = outcome.status().code();
    if (counts() && (outcome.ok() || error == Code::kRootLost || error == Code::kMismatch)) {
      process_.context().oracle.returned(process_.self(), lane.position() - 1, what,
                                         outcome_of(outcome));
    }
  }
  return outcome.status();
}

Status Program::allreduce(std::uint64_t step, std::uint64_t call, std::size_t elements,
                          bool zero_copy) {
  const Scenario& scenario = process_.context().scenario;
  const bool is_culprit = process_.self() == scenario.culprit && call == 0;
  const bool mismatches = is_culprit && scenario.mismatch_in == step;
  const std::size_t length =
      std::max(elements, Contribution::least_elements(scenario.most_workers)) +
      (mismatches ? 1 : 0);
  Contribution& contribution = *given_.emplace_back(std::make_unique<Contribution>(
      process_.self(), scenario.most_workers, salt_of(scenario.seed, step, call), length));
  CountedAllreduce operation(contribution, zero_copy, is_culprit && scenario.exception_in == step);
  Result<Contributors> outcome = Status();
  const Status status = run_operation(operation, "an allreduce", outcome);
  if (status.code() == Code::kMismatch && scenario.mismatch_in == step && call == 0) {
    note_result(2);
    leaves_with_error_ = is_culprit && scenario.culprit_ends;
    return leaves_with_error_ ? status : Status();
  }
  if (!status.ok()) return status;
  std::string wrong;
  if (operation.came_without_data()) wrong = " the member that gave the result has none;";
  const Nodes counted = contribution.decode(outcome.value().generation(), wrong);
  if (counts()) {
    process_.context().oracle.check_data(process_.self(), "allreduce", counted,
                                         nodes_of(outcome.value()), wrong);
  }
  note_result(counted);
  contribution.overwrite();  // as a program does that goes on
  return {};
}

Status Program::broadcast(std::uint64_t step, std::uint64_t call, coordinator::Root root) {
  const std::int64_t salt = salt_of(process_.context().scenario.seed, step, call);
  const auto* const worker = std::get_if<WorkerId>(&root);
  for (;;) {
    const auto members = worker_.members();
    const bool is_root = worker != nullptr ? *worker == id_of(process_.self())
                                           : std::get<int>(root) == members->rank;
    std::int64_t value[2] = {is_root ? salt : 0, process_.self()};
    coordinator::BroadcastOperation operation({value, 2, DType::kI64, {}},
                                              coordinator::CallRoot(root, *members));
    Result<Contributors> outcome = Status();
    const Status status = run_operation(operation, "a broadcast", outcome);
    if (status.code() == Code::kAborted) continue;
    if (status.code() == Code::kRootLost) {
      note_result(1);
      return {};
    }
    if (!status.ok()) return status;
    const bool is_from_root = worker == nullptr || id_of(static_cast<Node>(value[1])) == *worker;
    if (counts() && (value[0] != salt || !is_from_root)) {
      process_.context().oracle.wrong(process_.incarnation() +
                                      ": a broadcast has not brought the root's data");
    }
    note_result(static_cast<std::uint64_t>(value[1]));
    return {};
  }
}

Status Program::barrier() {
  coordinator::BarrierOperation operation;
  Result<Contributors> outcome = Status();
  return run_operation(operation, "a barrier", outcome);
}

Status Program::allgather(std::uint64_t step, std::uint64_t call) {
  const std::int64_t salt = salt_of(process_.context().scenario.seed, step, call);
  std::vector<std::int64_t> mine(1 + process_.self() % 3, salt);
  mine.front() = process_.self();
  std::vector<std::int64_t> all;
  coordinator::AllgatherOperation operation(
      ConstTensorView{mine.data(), mine.size(), DType::kI64, {}},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
        all.resize(bytes.size() / sizeof(std::int64_t));
        if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
      });
  Result<Contributors> outcome = Status();
  if (Status status = run_operation(operation, "an allgather", outcome); !status.ok())
    return status;
  Nodes counted;
  std::string wrong;
  for (std::size_t at = 0; at < all.size();) {
    const auto node = static_cast<Node>(all[at]);
    if (all[at] < 0 || node >= kMostWorkers || contains(counted, node)) {
      wrong = " a block is no worker's;";
      break;
    }
    counted |= only(node);
    at += 1 + node % 3;
    note_result(node);
  }
  if (counts()) {
    process_.context().oracle.check_data(process_.self(), "allgather", counted,
                                         nodes_of(outcome.value()), wrong);
  }
  return {};
}

Status Program::reduce_scatter(std::uint64_t step, std::uint64_t call) {
  const Scenario& scenario = process_.context().scenario;
  const std::int64_t salt = salt_of(scenario.seed, step, call);
  std::vector<std::int64_t> mine(3 * scenario.most_workers, salt);
  std::vector<std::int64_t> part;
  coordinator::ReduceScatterOperation operation(
      ConstTensorView{mine.data(), mine.size(), DType::kI64, {}}, ReduceOp::kSum,
      [&](std::span<const std::byte> bytes, std::size_t /*offset*/) {
        part.resize(bytes.size() / sizeof(std::int64_t));
        if (!bytes.empty()) std::memcpy(part.data(), bytes.data(), bytes.size());
      });
  Result<Contributors> outcome = Status();
  if (Status status = run_operation(operation, "a reduce_scatter", outcome); !status.ok()) {
    return status;
  }
  const auto count = static_cast<std::int64_t>(outcome.value().size());
  const bool right = std::all_of(part.begin(), part.end(),
                                 [&](std::int64_t value) { return value == salt * count; });
  if (counts() && !right) {
    process_.context().oracle.wrong(process_.incarnation() + ": a reduce_scatter's part is wrong");
  }
  return {};
}

}  // namespace elastic::simulation
