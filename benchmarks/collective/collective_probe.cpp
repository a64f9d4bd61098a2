#include "benchmarks/collective/collective_probe.hpp"

#include <cstring>
#include <span>

#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/host_copy.hpp"
#include "benchmarks/job/monotonic_time.hpp"

namespace elastic::bench {

namespace {

Allocation memory_of(const CollectiveOptions& options, Context& context, const RankDevice* device,
                     std::size_t bytes) {
  if (options.memory == "allocated") return context.allocate(bytes);
  return tensor_memory(device, bytes);
}

/// Copies of a call's tensors in host memory.
struct OnHost {
  OnHost(const CallData& on, const RankDevice* device)
      : input(on.input, device), output(on.output, device), data(on) {
    data.input = input.view();
    data.output = output.view();
  }

  const HostCopy input;
  const HostCopy output;
  CallData data;
};

}  // namespace

std::vector<std::size_t> counts_of(const CollectiveOptions& options, const Collective& collective,
                                   int ranks) {
  const std::size_t granularity = collective.granularity(ranks);
  std::vector<std::size_t> counts;
  for (const std::size_t size : sizes_of(options.sizes)) {
    const std::size_t pieces = (size / size_of(options.dtype) + granularity - 1) / granularity;
    if (counts.empty() || pieces * granularity > counts.back()) {
      counts.push_back(pieces * granularity);
    }
  }
  return counts;
}

Workspace::Workspace(const CollectiveOptions& options, const Collective& collective,
                     Context& context, const RankDevice* device)
    : device_(device),
      dtype_(options.dtype),
      op_(options.op),
      rank_(context.rank()),
      ranks_(context.size()),
      pattern_(options.dtype, options.op, ranks_),
      counts_(counts_of(options, collective, ranks_)),
      input_(memory_of(options, context, device, counts_.back() * size_of(dtype_))),
      output_(memory_of(options, context, device, input_.bytes())) {}

CallData Workspace::data(std::size_t count) {
  const bool on_device = device_ != nullptr;
  const Device device = on_device ? device_->device() : Device{};
  return {.pattern = pattern_,
          .op = op_,
          .rank = rank_,
          .ranks = ranks_,
          .input = {input_.data(), count, dtype_, device},
          .output = {output_.data(), count, dtype_, device},
          .stream = on_device ? device_->stream() : CudaStream{}};
}

void CollectiveProbe::fill(const CallData& data) const {
  const OnHost host(data, device_);
  collective_.fill(host.data);
  host.input.write();
  // Overwrites the correct result that another backend may have left there.
  std::memset(host.data.output.data, 0xff, host.data.output.bytes());
  host.output.write();
}

Status CollectiveProbe::time(const CallData& data, Placement placement, int warmup, int calls,
                             std::vector<double>& times_us) {
  fill(data);
  const auto prepared = prepare(data, placement);
  if (!prepared.ok()) return prepared.status();
  const PreparedCall& call = prepared.value();
  for (int i = 0; i < warmup; ++i) {
    if (Status status = call(); !status.ok()) return status;
  }
  std::vector<double> own_us;
  own_us.reserve(static_cast<std::size_t>(calls));
  const auto meet = [&] { return check_complete(context_.barrier(), data.ranks); };
  // The barrier keeps the lateness of another rank out of the first call's time.
  if (Status status = meet(); !status.ok()) return status;
  for (int i = 0; i < calls; ++i) {
    if (apart_ && i > 0) {
      if (Status status = meet(); !status.ok()) return status;
    }
    const std::int64_t start = now_ns();
    if (Status status = call(); !status.ok()) return status;
    own_us.push_back(static_cast<double>(now_ns() - start) / 1e3);
  }
  const auto contributors =
      context_.allreduce(std::span(own_us), apart_ ? ReduceOp::kMax : ReduceOp::kAverage);
  times_us.insert(times_us.end(), own_us.begin(), own_us.end());
  return check_complete(contributors, data.ranks);
}

Result<std::int64_t> CollectiveProbe::count_wrong(const CallData& data, Placement placement) {
  // In place, the timed calls have overwritten the input with results.
  fill(data);
  const auto call = prepare(data, placement);
  if (!call.ok()) return call.status();
  if (Status status = call.value()(); !status.ok()) return status;
  const OnHost host(data, device_);
  host.input.read();
  host.output.read();
  std::int64_t wrong = collective_.count_wrong(host.data, placement);
  const auto contributors = context_.allreduce(std::span<std::int64_t>(&wrong, 1));
  if (Status status = check_complete(contributors, data.ranks); !status.ok()) return status;
  return wrong;
}

Result<PreparedCall> CollectiveProbe::prepare(const CallData& data, Placement placement) {
  if (peer_ != nullptr) {
    const CallTensors tensors = collective_.tensors(data, placement);
    return peer_->prepare(tensors.input, tensors.output);
  }
  return PreparedCall([this, &data, placement] {
    return check_complete(collective_.run(context_, data, placement), data.ranks);
  });
}

}  // namespace elastic::bench
