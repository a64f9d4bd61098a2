#include "benchmarks/recovery/recovery_time.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "benchmarks/report/statistics.hpp"

namespace elastic::bench {

namespace {

Status wrong(const std::string& message) {
  return Status(Code::kInternal, message);
}

/// A set of workers with one bit for each, as in CallRecord::counted.
std::uint32_t bits_of(const std::vector<int>& workers) {
  std::uint32_t bits = 0;
  for (const int worker : workers) bits |= std::uint32_t{1} << worker;
  return bits;
}

// Each call must count all survivors, and no victim that the call before did not count.
Status check_counted(const RecoveryRun& run) {
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << run.workers) - 1);
  const std::uint32_t left = all & ~bits_of(run.victims);
  const auto& first = run.survivors.begin()->second.calls;
  for (const auto& [rank, survivor] : run.survivors) {
    const auto& calls = survivor.calls;
    if (calls.size() != first.size()) return wrong("survivors made different numbers of calls");
    std::uint32_t before = all;
    for (std::size_t i = 0; i < calls.size(); before = calls[i++].counted) {
      const std::uint32_t counted = calls[i].counted;
      const std::string where =
          "worker " + std::to_string(rank) + ", call " + std::to_string(calls[i].call) + ": ";
      if (counted != first[i].counted) return wrong(where + "another survivor has another result");
      if ((counted & left) != left) return wrong(where + "a survivor was not counted");
      if ((counted & ~before) != 0) {
        return wrong(where + "a victim was counted after it had been left out");
      }
    }
  }
  return {};
}

/// The evaluation of one survivor's calls; durations are in milliseconds.
struct Findings {
  std::vector<double> undisturbed;
  std::vector<double> later;     // calls of the survivors alone
  std::int64_t returned_ns = 0;  // end of the first call without victims; 0: there is none
  bool committed = false;
};

Result<Findings> look_at(const RecoveryRun& run, const Survivor& survivor) {
  const std::uint32_t victims = bits_of(run.victims);
  if (victims == 0 && survivor.change.installed_ns < run.fault_ns) {
    return wrong("the fault changed nothing");
  }
  Findings found;
  for (const CallRecord& call : survivor.calls) {
    if (call.end_ns <= run.fault_ns) {
      if ((call.counted & victims) != victims)
        return wrong("a victim was left out before the fault");
      if (call.call >= run.warmup) found.undisturbed.push_back(to_ms(call.end_ns - call.start_ns));
    } else if ((call.counted & victims) != 0) {
      found.committed = true;
    } else if (victims == 0 && call.end_ns < survivor.change.installed_ns) {
      continue;  // the call ended in the old view, without the cut link
    } else if (found.returned_ns == 0) {
      found.returned_ns = call.end_ns;
    } else {
      found.later.push_back(to_ms(call.end_ns - call.start_ns));
    }
  }
  return found;
}

RecoveryPhases phases(const ChangeRecord& change, std::int64_t fault_ns, std::int64_t returned_ns) {
  return {.detect = to_ms(change.noticed_ns - fault_ns),
          .freeze = to_ms(change.reported_ns - change.noticed_ns),
          .decide = to_ms(change.decided_ns - change.reported_ns),
          .relink = to_ms(change.installed_ns - change.decided_ns),
          .replay = to_ms(returned_ns - change.installed_ns)};
}

}  // namespace

Result<RecoveryTime> recovery_time(const RecoveryRun& run) {
  if (run.survivors.empty()) return wrong("no worker survived");
  if (Status status = check_counted(run); !status.ok()) return status;
  RecoveryTime time;
  std::vector<double> undisturbed;
  std::vector<double> later;
  std::int64_t last_return_ns = 0;
  for (const auto& [rank, survivor] : run.survivors) {
    auto looked = look_at(run, survivor);
    if (!looked.ok()) return looked.status();
    const Findings& found = looked.value();
    if (found.returned_ns == 0) {
      return wrong("worker " + std::to_string(rank) + " has no call without the victim");
    }
    undisturbed.insert(undisturbed.end(), found.undisturbed.begin(), found.undisturbed.end());
    later.insert(later.end(), found.later.begin(), found.later.end());
    time.committed = time.committed || found.committed;
    time.change_ms = std::max(time.change_ms, to_ms(survivor.change.installed_ns - run.fault_ns));
    if (found.returned_ns <= last_return_ns) continue;
    last_return_ns = found.returned_ns;
    time.phases = phases(survivor.change, run.fault_ns, last_return_ns);
  }
  if (undisturbed.empty()) return wrong("the fault struck before there was an undisturbed call");
  time.undisturbed_ms = summarize(std::move(undisturbed)).median;
  double call_ms = time.undisturbed_ms;
  if (!later.empty()) call_ms = std::min(call_ms, summarize(std::move(later)).median);
  time.return_ms = to_ms(last_return_ns - run.fault_ns);
  time.recovery_ms = std::max(time.return_ms - call_ms, 0.0);
  return time;
}

}  // namespace elastic::bench
