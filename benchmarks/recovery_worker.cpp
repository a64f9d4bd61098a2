#include "benchmarks/recovery_worker.hpp"

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/monotonic_time.hpp"
#include "benchmarks/recovery_log.hpp"
#include "benchmarks/self_kill.hpp"
#include "benchmarks/statistics.hpp"
#include "benchmarks/worker_digits.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

namespace {

/// The loop of one worker. Belongs to the main thread.
class Worker {
 public:
  Worker(Context& context, const RecoveryWorkerOptions& options)
      : context_(context),
        options_(options),
        start_rank_(context.rank()),
        input_(options.bytes / sizeof(std::int64_t)),
        output_(input_.size()) {}

  Status run();

 private:
  bool is_victim() const { return start_rank_ == options_.victim; }
  Status make_call(int call);
  Status make_last_call(int call);
  std::int64_t usual_duration_ns() const;

  Context& context_;
  const RecoveryWorkerOptions& options_;
  const int start_rank_;
  std::vector<std::int64_t> input_;
  std::vector<std::int64_t> output_;
  std::vector<CallRecord> calls_;
};

Status Worker::run() {
  if (context_.size() != options_.np) {
    return Status(Code::kInternal, "the job has " + std::to_string(context_.size()) +
                                       " workers instead of " + std::to_string(options_.np));
  }
  for (int call = 0; call < kAllCalls; ++call) {
    input_.assign(input_.size(), digit_of(call, start_rank_));
    const bool last = call == kFaultCall && is_victim();
    if (Status status = last ? make_last_call(call) : make_call(call); !status.ok()) return status;
  }
  return write_calls(calls_file(options_.folder, start_rank_), calls_);
}

Status Worker::make_call(int call) {
  CallRecord record{.call = call, .start_ns = now_ns()};
  const Contributors contributors =
      context_.allreduce(std::span<const std::int64_t>(input_), std::span<std::int64_t>(output_));
  record.end_ns = now_ns();
  auto counted = counted_in(output_, call, options_.np);
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

Status Worker::make_last_call(int call) {
  SelfKill self_kill;
  if (Status status = SelfKill::open(fault_file(options_.folder), self_kill); !status.ok()) {
    return status;
  }
  self_kill.get_ready();
  const double delay_ns = options_.delay * static_cast<double>(usual_duration_ns());
  self_kill.arm(now_ns() + static_cast<std::int64_t>(delay_ns));
  Status status = make_call(call);
  self_kill.wait_for_the_end();
  return status;
}

std::int64_t Worker::usual_duration_ns() const {
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
  if (!options.transport.empty()) library.transport = options.transport;
  Context context(library);
  Worker worker(context, options);
  Status status = worker.run();
  if (status.ok()) context.shutdown();
  return status;
}

}  // namespace elastic::bench
