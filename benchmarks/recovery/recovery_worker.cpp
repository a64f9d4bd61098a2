#include "benchmarks/recovery/recovery_worker.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <signal.h>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/config/environment.hpp"
#include "base/config/launch_environment.hpp"
#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/host_copy.hpp"
#include "benchmarks/job/monotonic_time.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/network/host_network.hpp"
#include "benchmarks/network/link_cut.hpp"
#include "benchmarks/recovery/recovery_log.hpp"
#include "benchmarks/recovery/strike.hpp"
#include "benchmarks/recovery/worker_digits.hpp"
#include "benchmarks/report/statistics.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

using network::HostNetwork;
using network::LinkCut;

namespace {

/// In which NCCL makes a communicator, even where ranks share a device.
constexpr std::int64_t kTimeForNccl = 1'500'000'000;

std::int64_t ns_of(ViewChange::Moment moment) {
  return std::chrono::nanoseconds(moment.time_since_epoch()).count();
}

ChangeRecord record_of(const ViewChange& change) {
  return {.generation = change.generation,
          .noticed_ns = ns_of(change.noticed),
          .reported_ns = ns_of(change.reported),
          .decided_ns = ns_of(change.decided),
          .installed_ns = ns_of(change.installed)};
}

std::span<std::int64_t> elements(const HostCopy& tensor) {
  return {static_cast<std::int64_t*>(tensor.view().data), tensor.view().count};
}

/// The loop of one worker. Owned by the main thread.
class RecoveryWorker {
 public:
  /// `device` is null for tensors in host memory.
  RecoveryWorker(Context& context, const RecoveryWorkerOptions& options, const RankDevice* device)
      : context_(context),
        options_(options),
        start_rank_(context.rank()),
        device_(device),
        memory_{tensor_memory(device, options.bytes), tensor_memory(device, options.bytes)},
        input_(tensor_in(memory_[0], DType::kI64, device), device),
        output_(tensor_in(memory_[1], DType::kI64, device), device) {}

  Status run();

 private:
  /// Whether the other workers lose this rank: not if the fault cuts a link.
  bool is_victim(int rank) const {
    return options_.hosts.empty() && std::find(options_.victims.begin(), options_.victims.end(),
                                               rank) != options_.victims.end();
  }
  void let_nccl_begin();
  void learn_pids();
  Status make_call(int call);
  Status make_struck_call(int call);
  Status prepare(Strike& strike);
  Status prepare_cut(Strike& strike);
  Status end_as_survivor();
  std::int64_t usual_duration_ns() const;

  Context& context_;
  const RecoveryWorkerOptions& options_;
  const int start_rank_;
  std::vector<std::int64_t> pids_;  // of all workers, by rank at the start
  const RankDevice* const device_;
  const std::array<Allocation, 2> memory_;
  const HostCopy input_;
  const HostCopy output_;
  std::vector<CallRecord> calls_;
  std::array<LinkCut, 2> cuts_;  // one for each direction
};

Status RecoveryWorker::run() {
  if (context_.size() != options_.np) {
    return Status(Code::kInternal, "the job has " + std::to_string(context_.size()) +
                                       " workers instead of " + std::to_string(options_.np));
  }
  learn_pids();
  if (device_ != nullptr) let_nccl_begin();
  for (int call = 0; call < kAllCalls; ++call) {
    std::ranges::fill(elements(input_), digit_of(call, start_rank_));
    input_.write();
    const bool strikes = call == kFaultCall && start_rank_ == options_.victims.front();
    if (Status status = strikes ? make_struck_call(call) : make_call(call); !status.ok()) {
      return status;
    }
  }
  return end_as_survivor();
}

/// The first calls of tensors on devices go through the host, as NCCL takes some time to begin.
void RecoveryWorker::let_nccl_begin() {
  const std::int64_t until = now_ns() + kTimeForNccl;
  bool all_have_waited = false;
  while (!all_have_waited) {
    input_.write();
    context_.allreduce(tensor_in(memory_[0], DType::kI64, device_),
                       tensor_in(memory_[1], DType::kI64, device_), ReduceOp::kSum,
                       device_->stream());
    all_have_waited = context_.allreduce(std::int64_t{now_ns() >= until}, ReduceOp::kMin) == 1;
  }
}

void RecoveryWorker::learn_pids() {
  const std::int64_t own = ::getpid();
  pids_ = context_.allgather(std::span<const std::int64_t>(&own, 1)).values;
}

Status RecoveryWorker::make_call(int call) {
  CallRecord record{.call = call, .start_ns = now_ns()};
  const Contributors contributors = context_.allreduce(
      tensor_in(memory_[0], DType::kI64, device_), tensor_in(memory_[1], DType::kI64, device_),
      ReduceOp::kSum, device_ != nullptr ? device_->stream() : CudaStream{});
  record.end_ns = now_ns();
  output_.read();
  auto counted = counted_in(elements(output_), call, options_.np);
  if (!counted.ok()) return counted.status();
  record.counted = counted.value();
  if (static_cast<std::size_t>(std::popcount(record.counted)) != contributors.size()) {
    return Status(Code::kInternal, "call " + std::to_string(call) + " says that " +
                                       std::to_string(contributors.size()) +
                                       " workers contributed, but its sum is of " +
                                       std::to_string(std::popcount(record.counted)));
  }
  calls_.push_back(record);
  return {};
}

/// Prepares a fault that signals all victims, this process last.
Status RecoveryWorker::prepare(Strike& strike) {
  std::vector<pid_t> others;
  for (const int victim : options_.victims) {
    if (victim == start_rank_) continue;
    others.push_back(static_cast<pid_t>(pids_[static_cast<std::size_t>(victim)]));
  }
  const int signal = options_.stops ? SIGSTOP : SIGKILL;
  const auto blow = [others, signal] {
    for (const pid_t other : others) ::kill(other, signal);
    ::kill(::getpid(), signal);
  };
  return Strike::open(fault_file(options_.folder), blow, strike);
}

/// Prepares a fault that cuts the link between the two victims, in both directions.
Status RecoveryWorker::prepare_cut(Strike& strike) {
  const std::array<int, 2> ends{options_.victims.front(), options_.victims.back()};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string& from = options_.hosts.at(static_cast<std::size_t>(ends[i]));
    Status status = LinkCut::open(from, HostNetwork::address(ends[1 - i]), cuts_[i]);
    if (!status.ok()) return status;
  }
  const auto blow = [this] {
    for (LinkCut& cut : cuts_) cut.strike();
  };
  return Strike::open(fault_file(options_.folder), blow, strike);
}

/// Makes the call with the fault, which may come before it; runs on the first victim alone.
Status RecoveryWorker::make_struck_call(int call) {
  Strike strike;
  Status ready = options_.hosts.empty() ? prepare(strike) : prepare_cut(strike);
  if (!ready.ok()) return ready;
  strike.get_ready();
  if (options_.between) {
    // By then the others have left the call before, and are in the next.
    strike.arm(now_ns() + usual_duration_ns());
    strike.wait_for_the_end();  // only a stopped process returns
  }
  const double delay_ns = options_.delay * static_cast<double>(usual_duration_ns());
  strike.arm(now_ns() + static_cast<std::int64_t>(delay_ns));
  Status status = make_call(call);
  strike.wait_for_the_end();
  if (!status.ok() || options_.hosts.empty()) return status;
  for (LinkCut& cut : cuts_) {
    if (Status struck = cut.confirm(); !struck.ok()) return struck;
  }
  return {};
}

/// Writes the records. The first survivor also kills victims that SIGSTOP has stopped.
Status RecoveryWorker::end_as_survivor() {
  int first = 0;
  while (is_victim(first)) ++first;
  for (const int victim : options_.victims) {
    if (!options_.stops || start_rank_ != first) break;
    ::kill(static_cast<pid_t>(pids_[static_cast<std::size_t>(victim)]), SIGKILL);
  }
  const ChangeRecord change = record_of(context_.last_view_change());
  if (Status status = write_change(change_file(options_.folder, start_rank_), change);
      !status.ok()) {
    return status;
  }
  return write_calls(calls_file(options_.folder, start_rank_), calls_);
}

std::int64_t RecoveryWorker::usual_duration_ns() const {
  std::vector<double> durations;
  for (const CallRecord& record : calls_) {
    if (record.call < kWarmupCalls) continue;
    durations.push_back(static_cast<double>(record.end_ns - record.start_ns));
  }
  return static_cast<std::int64_t>(summarize(std::move(durations)).median);
}

}  // namespace

Status run_recovery_worker(const RecoveryWorkerOptions& options) {
  Options library;
  if (const auto transport = find_named(kTransports, options.transport)) {
    library.transport = *transport;
  }
  const auto launch = read_launch_environment(read_environment());
  if (!launch.ok()) return launch.status();
  if (options.device == "cuda") RankDevice::be_own_host_to_nccl(launch.value().local_np);
  if (!options.hosts.empty()) {
    const int host = launch.value().rank;
    // To be done before there are other threads, which would stay in the old namespace.
    Status entered = network::enter_host(options.hosts.at(static_cast<std::size_t>(host)));
    if (!entered.ok()) return entered;
    library.bind = HostNetwork::address(host);
  }
  Context context(library);
  const auto device = open_device(options.device, context);
  if (!device.ok()) return device.status();
  RecoveryWorker worker(context, options, device.value().get());
  Status status = worker.run();
  if (status.ok()) context.shutdown();
  return status;
}

}  // namespace elastic::bench
