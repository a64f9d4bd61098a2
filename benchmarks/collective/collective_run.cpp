#include "benchmarks/collective/collective_run.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/collective/bandwidth.hpp"
#include "benchmarks/collective/collective_probe.hpp"
#include "benchmarks/collective/collective_report.hpp"
#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/turns.hpp"
#include "benchmarks/peers/contenders.hpp"

namespace elastic::bench {

namespace {

constexpr std::array kPlacements{Placement::kOutOfPlace, Placement::kInPlace};

std::vector<std::string> labels_of(const std::vector<Contender>& contenders) {
  std::vector<std::string> labels;
  for (const Contender& one : contenders) labels.push_back(one.label);
  return labels;
}

/// Measures all backends, one size after another. Owned by the main thread.
class CollectiveRun {
 public:
  CollectiveRun(const CollectiveOptions& options, const std::vector<Contender>& contenders,
                const RankDevice* device)
      : options_(options),
        collective_(make_collective(options.operation)),
        labels_(labels_of(contenders)),
        workspace_(options, *collective_, contenders[compared_with(labels_)].context, device) {
    for (const Contender& one : contenders) {
      probes_.emplace_back(one.context, one.peer.get(), *collective_, device, options.apart);
    }
  }

  const std::vector<std::size_t>& counts() const { return workspace_.counts(); }
  Result<SizeResult> measure(std::size_t count);

 private:
  using Times = std::vector<std::vector<double>>;  // of each backend, in microseconds
  Status take_turns(const CallData& data, Placement placement, Times& times);
  Result<Cell> cell_of(const CallData& data, Placement placement, std::size_t backend,
                       const std::vector<double>& times);

  const CollectiveOptions& options_;
  const std::unique_ptr<Collective> collective_;
  const std::vector<std::string> labels_;
  Workspace workspace_;
  std::vector<CollectiveProbe> probes_;
};

// The backends take turns, so that a disturbance of the machine affects all of them.
Status CollectiveRun::take_turns(const CallData& data, Placement placement, Times& times) {
  for (int turn = 0; turn < options_.turns; ++turn) {
    const int calls = calls_in_turn(options_.iterations, options_.turns, turn);
    for (std::size_t backend = 0; backend < probes_.size(); ++backend) {
      Status status =
          probes_[backend].time(data, placement, options_.warmup, calls, times[backend]);
      if (!status.ok()) return status.within(labels_[backend]);
    }
  }
  return {};
}

Result<Cell> CollectiveRun::cell_of(const CallData& data, Placement placement, std::size_t backend,
                                    const std::vector<double>& times) {
  Cell cell;
  cell.time_us = summarize(times);
  cell.algbw = algorithm_bandwidth(data.input.bytes(), cell.time_us.median);
  cell.busbw = cell.algbw * collective_->bus_factor(data.ranks);
  if (!options_.check) return cell;
  auto wrong = probes_[backend].count_wrong(data, placement);
  if (!wrong.ok()) return wrong.status().within(labels_[backend]);
  cell.wrong = wrong.value();
  return cell;
}

Result<SizeResult> CollectiveRun::measure(std::size_t count) {
  SizeResult result{.count = count, .backends = {}};
  for (const std::string& label : labels_) result.backends.push_back({label, {}});
  const CallData data = workspace_.data(count);
  const std::size_t reference = compared_with(labels_);
  for (const Placement placement : kPlacements) {
    if (!collective_->offers(placement)) continue;
    const auto place = static_cast<std::size_t>(placement);
    Times times(probes_.size());
    if (Status status = take_turns(data, placement, times); !status.ok()) return status;
    for (std::size_t backend = 0; backend < probes_.size(); ++backend) {
      auto cell = cell_of(data, placement, backend, times[backend]);
      if (!cell.ok()) return cell.status();
      result.backends[backend].cells[place] = cell.value();
    }
    const double compared = result.backends[reference].cells[place]->time_us.median;
    for (BackendResult& one : result.backends) {
      one.cells[place]->ratio = one.cells[place]->time_us.median / compared;
    }
  }
  return result;
}

}  // namespace

std::size_t compared_with(const std::vector<std::string>& labels) {
  const auto native = std::find(labels.begin(), labels.end(), "native");
  return native == labels.end() ? 0 : static_cast<std::size_t>(native - labels.begin());
}

Status run_collective(const CollectiveOptions& options, const LibrarySettings& settings) {
  auto contexts = open_contexts(options, settings);
  if (!contexts.ok()) return contexts.status();
  const auto device = open_device(options.device, *contexts.value().front().context);
  if (!device.ok()) return device.status();
  auto contenders =
      make_contenders(settings.backends, options, contexts.value(), device.value().get());
  if (!contenders.ok()) return contenders.status();
  const Context& first = *contexts.value().front().context;
  CollectiveRun run(options, contenders.value(), device.value().get());
  CollectiveReport report(options, settings, first.size(), first.rank() == 0);
  report.begin(device_text(device.value().get()) + peers_text(contenders.value()));
  for (const std::size_t count : run.counts()) {
    auto result = run.measure(count);
    if (!result.ok()) return result.status();
    report.add(result.value());
  }
  Status status = report.end(first.tuning());
  shut_down(contexts.value());
  return status;
}

}  // namespace elastic::bench
