#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "contribution.hpp"
#include "model_worker.hpp"
#include "mutated_call.hpp"
#include "oracle.hpp"
#include "state_sync.hpp"

namespace elastic::simulation {

using coordinator::Operation;

namespace {

constexpr std::size_t kImageBytes = 200;
constexpr int kAttemptsToSynchronise = 3;

/// A number that all workers draw alike for a call.
std::uint64_t drawn(std::uint64_t seed, std::uint64_t step, std::uint64_t call) {
  return static_cast<std::uint64_t>(salt_of(seed + 77, step, call)) >> 4U;
}

Nodes nodes_of(const Contributors& contributors) {
  Nodes nodes = 0;
  for (const WorkerId id : contributors.workers()) nodes |= only(node_of_id(id));
  return nodes;
}

Outcome outcome_of(const Result<Contributors>& result) {
  // An error's generation is that of the view in which this worker met it.
  if (!result.ok()) return {0, 0, result.status().code()};
  return {result.value().generation(), nodes_of(result.value()), Code::kOk};
}

}  // namespace

/// A named call that was submitted and not waited for.
class NamedCall {
 public:
  NamedCall(std::string name, Node self, std::int64_t salt, std::size_t elements)
      : name_(std::move(name)), contribution_(self, salt, elements) {}

  Status submit(coordinator::Coordinator& coordinator) {
    auto work = coordinator.submit(name_, {contribution_.view()}, ReduceOp::kSum);
    if (!work.ok()) return work.status();
    work_ = std::move(work).value();
    return {};
  }
  Result<Contributors> wait() const {
    work_->wait();
    return work_->outcome();
  }
  const std::string& name() const { return name_; }
  const Contribution& contribution() const { return contribution_; }

 private:
  const std::string name_;
  Contribution contribution_;
  std::shared_ptr<detail::WorkState> work_;
};

Program::Program(ModelWorker& worker, Process& process) : worker_(worker), process_(process) {}
Program::~Program() = default;

void Program::run() {
  Status ended;
  try {
    ended = train();
  } catch (const std::bad_alloc&) {
    // It lives on and calls nothing any more: the others are not to wait for it.
    doing_ = "idle after an exception";
    idle_ = true;
    process_.around().oracle.excuse(only(process_.self()));
    ended = worker_.wait_until_ended();
  }
  doing_ = "leaving";
  if (leaves_with_error_) {
    said_bye_ = true;
    worker_.leave(false);
    return worker_.finish(ended);
  }
  if (ended.ok()) {
    said_bye_ = true;
    worker_.leave(!leave_early_ || worker_.gate().commits() >= process_.around().scenario.steps);
  }
  worker_.finish(ended);
  doing_ = "ended";
}

Status Program::train() {
  doing_ = "waiting to be a member";
  if (Status status = worker_.wait_until_member(); !status.ok()) return status;
  const Scenario& scenario = process_.around().scenario;
  if (scenario.uses_run) {
    if (Status status = synchronise(); !status.ok()) return status;
  }
  if (scenario.named_in_background) background_ = std::thread([this] { call_in_background(); });
  while (worker_.gate().commits() < scenario.steps && !leave_early_) {
    if (Status status = step(worker_.gate().commits()); !status.ok()) return status;
    if (Status status = boundary(); !status.ok()) return status;
  }
  return {};
}

/// Metrics, for example: named calls that know of no steps, for as long as the worker is a member.
void Program::call_in_background() {
  const std::int64_t salt = salt_of(process_.around().scenario.seed, 0, 1000);
  for (;;) {
    NamedCall call("background", process_.self(), salt, 4);
    if (!call.submit(worker_.coordinator()).ok()) return;
    const Result<Contributors> result = call.wait();
    if (is_late(result.status())) continue;
    if (!result.ok()) return;
    std::string wrong;
    const Nodes counted = call.contribution().decode(0, wrong);
    if (counts()) {
      process_.around().oracle.check_data(process_.self(), call.name(), counted,
                                          nodes_of(result.value()), wrong);
    }
    compute(Milliseconds(8));
  }
}

void Program::join_background() {
  if (background_.joinable()) background_.join();
}

void Program::compute(Milliseconds most) {
  std::this_thread::sleep_for(process_.around().chance.between(Milliseconds(0), most));
}

void Program::note_result(std::uint64_t what) {
  state_ = (state_ ^ what) * 0x9E3779B97F4A7C15ULL;
  state_ ^= state_ >> 29U;
}

Status Program::step(std::uint64_t number) {
  const std::uint64_t seed = process_.around().scenario.seed;
  std::vector<std::unique_ptr<NamedCall>>& named = open_;
  coordinator::Coordinator& coordinator = worker_.coordinator();
  for (unsigned i = 0; i < kOperationsPerStep; ++i) {
    doing_ = "submitting";
    const std::uint64_t call = 100 + i;
    named.push_back(std::make_unique<NamedCall>(
        "step" + std::to_string(number) + "." + std::to_string(i), process_.self(),
        salt_of(seed, number, call), drawn(seed, number, call) % 200));
    if (Status status = named.back()->submit(coordinator); !status.ok()) return status;
    compute(Milliseconds(2));
    coordinator.flush();
    const Status status = unnamed_call(number, i);
    const bool goes_on = forgets_timeouts() && is_late(status);
    if (!status.ok() && !goes_on) return status;
    compute(Milliseconds(2));
  }
  for (const auto& call : named) {
    doing_ = "waiting for named calls";
    Result<Contributors> result = call->wait();
    while (calls_again(result.status())) {
      if (Status status = call->submit(coordinator); !status.ok()) return status;
      result = call->wait();
    }
    if (!result.ok()) return result.status();
    if (counts()) {
      process_.around().oracle.returned_named(process_.self(), call->name(), outcome_of(result));
    }
    std::string wrong;
    const Nodes counted = call->contribution().decode(0, wrong);
    if (counts()) {
      process_.around().oracle.check_data(process_.self(), call->name(), counted,
                                          nodes_of(result.value()), wrong);
    }
    note_result(counted);
  }
  named.clear();
  // With that mistake others may still need what lies there, after the program has gone on.
  if (process_.around().scenario.mutation != Mutation::kEarlyRelease) given_.clear();
  return {};
}

Status Program::unnamed_call(std::uint64_t step, std::uint64_t call) {
  const Scenario& scenario = process_.around().scenario;
  const std::uint64_t what = drawn(scenario.seed, step, call);
  const std::uint64_t length = what / 1000;
  const bool wrong = call == 0 && (scenario.mismatch_in == step || scenario.exception_in == step);
  switch (wrong ? 19 : what % 20) {
    case 0:
    case 1:
      return broadcast(step, call);
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
  if (counts()) ++process_.around().tally.late_calls;
  leaves_with_error_ = process_.around().scenario.ends_after_timeout;
  return !leaves_with_error_;
}

bool Program::forgets_timeouts() const {
  return process_.around().scenario.mutation == Mutation::kForgottenTimeout;
}

/// It found no view to begin in.
bool Program::is_late(const Status& failure) const {
  return failure.code() == Code::kTimeout && worker_.is_in();
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
      process_.around().oracle.returned(process_.self(), lane.position() - 1, what,
                                        outcome_of(outcome));
    }
  }
  return outcome.status();
}

Status Program::allreduce(std::uint64_t step, std::uint64_t call, std::size_t elements,
                          bool direct) {
  const Scenario& scenario = process_.around().scenario;
  const bool is_culprit = process_.self() == scenario.culprit && call == 0;
  const bool mismatches = is_culprit && scenario.mismatch_in == step;
  const std::size_t length =
      std::max(elements, Contribution::kLeastElements) + (mismatches ? 1 : 0);
  Contribution& contribution = *given_.emplace_back(
      std::make_unique<Contribution>(process_.self(), salt_of(scenario.seed, step, call), length));
  CountedAllreduce operation(contribution, direct, is_culprit && scenario.exception_in == step);
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
    process_.around().oracle.check_data(process_.self(), "allreduce", counted,
                                        nodes_of(outcome.value()), wrong);
  }
  note_result(counted);
  contribution.overwrite();  // as a program does that goes on
  return {};
}

Status Program::broadcast(std::uint64_t step, std::uint64_t call) {
  const std::int64_t salt = salt_of(process_.around().scenario.seed, step, call);
  for (;;) {
    const auto members = worker_.members();
    std::int64_t value[2] = {members->rank == 0 ? salt : 0, process_.self()};
    coordinator::BroadcastOperation operation({value, 2, DType::kI64, {}}, 0, *members);
    Result<Contributors> outcome = Status();
    const Status status = run_operation(operation, "a broadcast", outcome);
    if (status.code() == Code::kAborted) continue;
    if (status.code() == Code::kRootLost) {
      note_result(1);
      return {};
    }
    if (!status.ok()) return status;
    if (counts() && value[0] != salt) {
      process_.around().oracle.wrong(process_.incarnation() +
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
  const std::int64_t salt = salt_of(process_.around().scenario.seed, step, call);
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
  Nodes counted = 0;
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
    process_.around().oracle.check_data(process_.self(), "allgather", counted,
                                        nodes_of(outcome.value()), wrong);
  }
  return {};
}

Status Program::reduce_scatter(std::uint64_t step, std::uint64_t call) {
  const std::int64_t salt = salt_of(process_.around().scenario.seed, step, call);
  std::vector<std::int64_t> mine(Contribution::kLeastElements * kMostWorkers, salt);
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
    process_.around().oracle.wrong(process_.incarnation() + ": a reduce_scatter's part is wrong");
  }
  return {};
}

Status Program::boundary() {
  coordinator::Coordinator& coordinator = worker_.coordinator();
  doing_ = "draining";
  coordinator.flush();
  coordinator.drain();
  doing_ = "at a boundary";
  if (counts()) {
    process_.around().oracle.committed(process_.self(), worker_.gate().commits() + 1, state_);
  }
  bool paused = false;
  if (Status status = worker_.gate().commit(paused); !status.ok()) return status;
  const bool joined = paused && worker_.admitted_at() == worker_.gate().commits();
  return joined && process_.around().scenario.uses_run ? synchronise() : Status();
}

Status Program::synchronise() {
  for (int i = 0; i < kAttemptsToSynchronise; ++i) {
    bool agreed = false;
    if (Status status = synchronise_once(agreed); !status.ok()) return status;
    if (agreed) return {};
  }
  return Status(Code::kInternal, "the state cannot be made the same on all members");
}

Status Program::synchronise_once(bool& agreed) {
  std::uint64_t bytes = kImageBytes;
  HeaderOperation header(bytes);
  Result<Contributors> outcome = Status();
  if (Status status = run_operation(header, "a header", outcome); !status.ok()) return status;
  JobState state{worker_.gate().commits(), state_};
  TransferOperation& transfer =
      *transfers_.emplace_back(std::make_unique<TransferOperation>(state, kImageBytes));
  if (Status status = run_operation(transfer, "a transfer", outcome); !status.ok()) return status;
  std::vector<JobState> all;
  coordinator::AllgatherOperation compare(
      ConstTensorView{&state, sizeof state / sizeof(std::int64_t), DType::kI64, {}},
      [&](std::span<const std::byte> values, const std::vector<std::size_t>& /*counts*/) {
        all.resize(values.size() / sizeof(JobState));
        if (!values.empty()) std::memcpy(all.data(), values.data(), values.size());
      });
  if (Status status = run_operation(compare, "a comparison", outcome); !status.ok()) {
    // The lane may be asked for what lies in the transfer's memory.
    worker_.lane(0).close(status);
    return status;
  }
  agreed = std::all_of(all.begin(), all.end(), [&](const JobState& its) { return its == state; });
  if (!agreed) return {};
  worker_.gate().set_commits(state.commits);
  state_ = state.hash;
  synced_ = true;
  worker_.set_synced();
  return {};
}

std::string Program::describe() const {
  return std::to_string(worker_.gate().commits()) + " commits, " + doing_;
}

}  // namespace elastic::simulation
