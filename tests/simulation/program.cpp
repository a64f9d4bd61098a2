#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "contribution.hpp"
#include "model_worker.hpp"
#include "named_call.hpp"
#include "oracle.hpp"
#include "program_groups.hpp"
#include "state_sync.hpp"
#include "step_tensors.hpp"

namespace elastic::simulation {

using coordinator::Operation;

namespace {

constexpr std::size_t kImageBytes = 200;
constexpr int kAttemptsToSynchronise = 3;

}  // namespace

Program::Program(ModelWorker& worker, Process& process) : worker_(worker), process_(process) {
  if (!process.context().scenario.calls_groups) return;
  groups_ = std::make_unique<ProgramGroups>(
      worker, process, [this](const Status& failure) { return calls_again(failure); });
}
Program::~Program() = default;

void Program::run() {
  Status ended;
  try {
    ended = train();
  } catch (const std::bad_alloc&) {
    // It lives on and calls nothing any more: the others are not to wait for it.
    doing_ = "idle after an exception";
    idle_ = true;
    process_.context().oracle.excuse(only(process_.self()));
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
    worker_.leave(!leave_early_ || worker_.gate().commits() >= process_.context().scenario.steps);
  }
  worker_.finish(ended);
  doing_ = "ended";
}

Status Program::train() {
  doing_ = "waiting to be a member";
  if (Status status = worker_.wait_until_member(); !status.ok()) return status;
  const Scenario& scenario = process_.context().scenario;
  if (scenario.uses_run) {
    if (Status status = synchronise(); !status.ok()) return status;
  }
  if (scenario.named_in_background) background_ = std::thread([this] { call_in_background(); });
  while (worker_.gate().commits() < scenario.steps && !leave_early_) {
    const std::uint64_t number = worker_.gate().commits();
    if (scenario.leaves_run_in == number && scenario.uses_run) {
      if (Status status = leave_run_and_enter_again(number); !status.ok()) return status;
    }
    if (Status status = step(number); !status.ok()) return status;
    if (Status status = uneven_batches(number); !status.ok()) return status;
    if (Status status = boundary(); !status.ok()) return status;
  }
  return {};
}

void Program::compute(Milliseconds most) {
  std::this_thread::sleep_for(process_.context().chance.between(Milliseconds(0), most));
}

void Program::note_result(std::uint64_t what) {
  state_ = (state_ ^ what) * 0x9E3779B97F4A7C15ULL;
  state_ ^= state_ >> 29U;
}

Status Program::step(std::uint64_t number) {
  if (process_.context().scenario.steps_are_units) return step_as_unit(number);
  coordinator::Coordinator& coordinator = worker_.coordinator();
  for (unsigned i = 0; i < kOperationsPerStep; ++i) {
    const std::string name = "step" + std::to_string(number) + "." + std::to_string(i);
    if (Status status = submit_named(name, number, kFirstNamed + i); !status.ok()) return status;
    compute(Milliseconds(2));
    coordinator.flush();
    const Status status = unnamed_and_group_calls(number, i);
    const bool goes_on = forgets_timeouts() && is_late(status);
    if (!status.ok() && !goes_on) return status;
    compute(Milliseconds(2));
  }
  if (Status status = wait_for_named(number); !status.ok()) return status;
  if (groups_) {
    if (Status status = groups_->finish_named(number); !status.ok()) return status;
  }
  // With that mutation, other ranks may still read this memory after the program has gone on.
  if (process_.context().scenario.mutation != Mutation::kEarlyRelease) given_.clear();
  return {};
}

/// Some members of a group start its named call before a call of the job, and the others after it.
Status Program::unnamed_and_group_calls(std::uint64_t step, std::uint64_t call) {
  if (!groups_) return unnamed_call(step, call);
  const bool has_named = call == 0;
  doing_ = "in a call of a group";
  Status status = has_named ? groups_->start_named(step, true) : groups_->blocking_call(step);
  if (status.ok()) status = unnamed_call(step, call);
  if (status.ok() && has_named) status = groups_->start_named(step, false);
  return status;
}

/// The program leaves the training loop, from between two steps or from within one by an exception
/// that takes the handles of open calls with it, and calls elastic::run again.
Status Program::leave_run_and_enter_again(std::uint64_t step) {
  if (process_.context().scenario.leaves_run_within_step) {
    const std::string name = "left" + std::to_string(step);
    if (Status status = submit_named(name, step, kFirstLeft); !status.ok()) return status;
    if (Status status = unnamed_call(step, kFirstLeft + 1); !status.ok()) return status;
    for (auto& call : open_) {
      call->drop();
      dropped_.push_back(std::move(call));
    }
    open_.clear();
  }
  if (counts()) ++process_.context().tally.run_again;
  worker_.call_run();
  return synchronise();
}

Status Program::boundary() {
  coordinator::Coordinator& coordinator = worker_.coordinator();
  doing_ = "draining";
  coordinator.flush();
  coordinator.drain();
  if (Status status = end_dropped(); !status.ok()) return status;
  doing_ = "at a boundary";
  if (counts()) {
    process_.context().oracle.committed(process_.self(), worker_.gate().commits() + 1, state_);
  }
  bool paused = false;
  if (Status status = worker_.gate().commit(paused); !status.ok()) return status;
  const bool joined = paused && worker_.admitted_at() == worker_.gate().commits();
  return joined && process_.context().scenario.uses_run ? synchronise() : Status();
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
  const std::uint64_t bytes = kImageBytes;
  runtime::Roster roster;
  HeaderOperation header(bytes, roster);
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
  worker_.set_roster(std::move(roster));
  state_ = state.hash;
  synced_ = true;
  worker_.set_synced();
  return {};
}

std::string Program::describe() const {
  return std::to_string(worker_.gate().commits()) + " commits, " + doing_;
}

}  // namespace elastic::simulation
