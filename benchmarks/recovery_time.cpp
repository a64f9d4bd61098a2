#include "benchmarks/recovery_time.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "benchmarks/statistics.hpp"

namespace elastic::bench {

namespace {

Status wrong(const std::string& message) {
  return Status(Code::kInternal, message);
}

constexpr double to_ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// Who must be counted in a call: everybody, or everybody but the victim from some call on.
Status check_counted(const RecoveryRun& run) {
  const std::uint32_t all = (std::uint32_t{1} << run.workers) - 1;
  const std::uint32_t left = all & ~(std::uint32_t{1} << run.victim);
  const auto& first = run.survivors.begin()->second;
  for (const auto& [rank, calls] : run.survivors) {
    if (calls.size() != first.size()) return wrong("survivors made different numbers of calls");
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::uint32_t counted = calls[i].counted;
      const std::string where =
          "worker " + std::to_string(rank) + ", call " + std::to_string(calls[i].call) + ": ";
      if (counted != first[i].counted) return wrong(where + "another survivor has another result");
      if (counted != all && counted != left) return wrong(where + "a survivor was not counted");
      if (counted == all && i > 0 && calls[i - 1].counted == left) {
        return wrong(where + "the victim was counted after it had been left out");
      }
    }
  }
  return {};
}

}  // namespace

Result<RecoveryTime> recovery_time(const RecoveryRun& run) {
  if (run.survivors.empty()) return wrong("nobody survived");
  if (Status status = check_counted(run); !status.ok()) return status;
  RecoveryTime time;
  std::vector<double> undisturbed;
  std::vector<double> later;
  std::int64_t last_return_ns = 0;
  for (const auto& [rank, calls] : run.survivors) {
    bool found = false;
    for (const CallRecord& call : calls) {
      const bool with_victim = (call.counted >> run.victim & 1U) != 0;
      if (call.end_ns <= run.fault_ns) {
        if (!with_victim) return wrong("the victim was left out before it died");
        if (call.call >= run.warmup) undisturbed.push_back(to_ms(call.end_ns - call.start_ns));
      } else if (with_victim) {
        time.committed = true;
      } else if (!found) {
        found = true;
        last_return_ns = std::max(last_return_ns, call.end_ns);
      } else {
        later.push_back(to_ms(call.end_ns - call.start_ns));
      }
    }
    if (!found) return wrong("worker " + std::to_string(rank) + " has no call without the victim");
  }
  if (undisturbed.empty()) return wrong("the victim died before there was an undisturbed call");
  time.undisturbed_ms = summarize(std::move(undisturbed)).median;
  double call_ms = time.undisturbed_ms;
  if (!later.empty()) call_ms = std::min(call_ms, summarize(std::move(later)).median);
  time.recovery_ms = to_ms(last_return_ns - run.fault_ns) - call_ms;
  return time;
}

}  // namespace elastic::bench
