#include "benchmarks/allreduce_probe.hpp"

#include <span>
#include <string>

#include "benchmarks/monotonic_time.hpp"

namespace elastic::bench {

AllreduceProbe::AllreduceProbe(Context& context, const AllreduceOptions& options)
    : context_(context),
      options_(options),
      ranks_(context.size()),
      pattern_(options.dtype, options.op, ranks_),
      input_(options.sizes.max),
      output_(options.sizes.max) {}

Result<Measurement> AllreduceProbe::measure(std::size_t count, bool in_place) {
  pattern_.fill(input(count), context_.rank());
  for (int i = 0; i < options_.warmup; ++i) {
    if (Status status = call(count, in_place); !status.ok()) return status;
  }
  Measurement measurement;
  measurement.times_us.reserve(static_cast<std::size_t>(options_.iterations));
  // Nobody's first call includes the time that another still took to get here.
  if (Status status = check_complete(context_.barrier()); !status.ok()) return status;
  for (int i = 0; i < options_.iterations; ++i) {
    const std::int64_t start = now_ns();
    if (Status status = call(count, in_place); !status.ok()) return status;
    measurement.times_us.push_back(static_cast<double>(now_ns() - start) / 1e3);
  }
  context_.allreduce(std::span(measurement.times_us), ReduceOp::kAverage);
  if (options_.check) {
    auto wrong = count_wrong(count, in_place);
    if (!wrong.ok()) return wrong.status();
    measurement.wrong = wrong.value();
  }
  return measurement;
}

Status AllreduceProbe::call(std::size_t count, bool in_place) {
  if (in_place) return check_complete(context_.allreduce(input(count), options_.op));
  return check_complete(context_.allreduce(input(count), output(count), options_.op));
}

Result<std::int64_t> AllreduceProbe::count_wrong(std::size_t count, bool in_place) {
  // In place, the timed calls have reduced their own results again and again.
  pattern_.fill(input(count), context_.rank());
  if (Status status = call(count, in_place); !status.ok()) return status;
  std::int64_t wrong = pattern_.count_wrong(in_place ? input(count) : output(count));
  Status status = check_complete(context_.allreduce(std::span<std::int64_t>(&wrong, 1)));
  if (!status.ok()) return status;
  return wrong;
}

Status AllreduceProbe::check_complete(const Contributors& contributors) const {
  if (contributors.size() == static_cast<std::size_t>(ranks_)) return {};
  return Status(Code::kPeerLost,
                "a worker was lost: " + std::to_string(contributors.size()) + " of " +
                    std::to_string(ranks_) +
                    " ranks took part in a call; the times would not be comparable");
}

}  // namespace elastic::bench
