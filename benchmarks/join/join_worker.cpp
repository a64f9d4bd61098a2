#include "benchmarks/join/join_worker.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/job/child_run.hpp"
#include "benchmarks/job/monotonic_time.hpp"
#include "benchmarks/job/program_files.hpp"
#include "benchmarks/join/join_log.hpp"
#include "elastic/context.hpp"
#include "elastic/state.hpp"

namespace elastic::bench {

namespace {

/// Steps before worker 0 asks for the joiner, and the least steps that all workers do together.
constexpr std::int64_t kStepsAlone = 30;
constexpr int kStepsTogether = 30;
/// The duration of a step's simulated computation.
constexpr std::chrono::milliseconds kComputing{2};
constexpr std::size_t kGradients = 1024;
constexpr int kBroadcasts = 4;  ///< the first warms up
constexpr std::chrono::milliseconds kAskDeadline{30000};

/// The loop of one worker. Owned by the main thread.
class JoinWorker {
 public:
  JoinWorker(Context& context, const JoinWorkerOptions& options, std::int64_t start_ns)
      : context_(context),
        options_(options),
        asks_(context.rank() == 0),
        parameters_(options.state_bytes / sizeof(float), context.rank() < 0 ? 0.0F : 1.0F),
        gradients_(kGradients) {
    record_.joiner = context.rank() < 0;
    record_.entry.start_ns = start_ns;
    state_.add("parameters", parameters_);
    state_.add("steps", steps_);
  }

  Status run();

 private:
  void step();
  void ask_for_joiner();
  void measure_broadcasts();

  Context& context_;
  const JoinWorkerOptions& options_;
  const bool asks_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::int64_t steps_ = 0;
  State state_;
  std::int64_t step_end_ns_ = 0;
  std::future<Status> asked_;
  JoinRecord record_;
};

Status JoinWorker::run() {
  context_.run(state_, [this] {
    for (int together = 0; together < kStepsTogether; step()) {
      // The view changes only within `commit`, so the size is the same on all workers.
      if (context_.size() == options_.np) ++together;
      if (asks_ && steps_ == kStepsAlone) ask_for_joiner();
    }
  });
  if (asked_.valid()) {
    if (Status status = asked_.get(); !status.ok()) return status;
  }
  const bool whole = std::all_of(parameters_.begin(), parameters_.end(),
                                 [](float parameter) { return parameter == 1.0F; });
  if (!whole) return Status(Code::kInternal, "this worker has another state than was given");
  measure_broadcasts();
  return write_join(own_join_file(options_.folder), record_);
}

void JoinWorker::step() {
  std::this_thread::sleep_for(kComputing);
  context_.allreduce(std::span<float>(gradients_));
  ++steps_;
  state_.commit();
  const std::int64_t now = now_ns();
  if (step_end_ns_ == 0) record_.entry.end_ns = now;
  if (step_end_ns_ != 0) record_.gap_ns = std::max(record_.gap_ns, now - step_end_ns_);
  step_end_ns_ = now;
}

/// Asks in another thread, so that the steps go on.
void JoinWorker::ask_for_joiner() {
  asked_ = std::async(std::launch::async, [this]() -> Status {
    auto files = program_files();
    if (!files.ok()) return files.status();
    return run_child({files.value().elasticrun.string(), "ctl", "--job", options_.job, "add", "1"},
                     std::filesystem::path(options_.folder) / "ask", kAskDeadline);
  });
}

void JoinWorker::measure_broadcasts() {
  for (int i = 0; i < kBroadcasts; ++i) {
    context_.barrier();
    JoinRecord::Span span{.start_ns = now_ns()};
    context_.broadcast(std::span<float>(parameters_), 0);
    span.end_ns = now_ns();
    if (i > 0) record_.broadcasts.push_back(span);
  }
}

}  // namespace

Status run_join_worker(const JoinWorkerOptions& options) {
  const std::int64_t start_ns = now_ns();
  Options library;
  if (const auto transport = find_named(kTransports, options.transport)) {
    library.transport = *transport;
  }
  Context context(library);
  JoinWorker worker(context, options, start_ns);
  Status status = worker.run();
  if (status.ok()) context.shutdown();
  return status;
}

}  // namespace elastic::bench
