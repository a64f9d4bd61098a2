#include "fault/programs/call_stream.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fault/programs/digits.hpp"
#include "fault/programs/grouped_calls.hpp"
#include "fault/programs/sparse_calls.hpp"
#include "fault/programs/step_report.hpp"

namespace elastic::fault {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::array kKinds{
    "allreduce",        "named",        "broadcast",    "allgather",
    "reduce_scatter",   "alltoall",     "gather",       "scatter",
    "reduce",           "scan",         "queued",       "named_kinds",
    "adasum",           "step_group",   "join",         "hierarchical_adasum",
    "sparse",           "sparse_dense", "sparse_async", "grouped_reduce_scatter",
    "grouped_allgather"};
constexpr std::size_t kNamedTensors = 4;
/// As many as `digit` has.
constexpr std::size_t kSlots = 18;

std::size_t bytes_of(const Arguments& arguments) {
  return arguments.elements * sizeof(std::int64_t);
}

std::int64_t only_value(std::span<const std::int64_t> data) {
  const bool same = std::all_of(data.begin(), data.end(),
                                [&](std::int64_t value) { return value == data.front(); });
  if (!same) throw std::logic_error("mixed values in one call, " + std::to_string(data.front()));
  return data.front();
}

}  // namespace

CallStream::CallStream(const Arguments& arguments, int slot)
    : arguments_(arguments),
      slot_(slot),
      death_(arguments.die),
      own_(static_cast<std::uint64_t>(slot)),
      input_(allocate(arguments.kind == "allocated" ? bytes_of(arguments) : 0)),
      output_(allocate(input_.bytes())) {}

void CallStream::run() {
  for (std::uint64_t index = 0;
       arguments_.until.empty() ? index < arguments_.steps : !agree_on_end(arguments_.until);
       ++index) {
    step(index);
    // Tests set the length of a step, so that faults come in the middle of many.
    if (arguments_.pause_us > 0) {
      std::this_thread::sleep_for(microseconds(arguments_.pause_us));
    }
  }
}

void CallStream::step(std::uint64_t index) {
  const std::string kind =
      arguments_.kind == "mixed" ? kKinds[index % kKinds.size()] : arguments_.kind;
  StepReport report;
  report.step = index;
  const auto begin = steady_clock::now();
  death_.enters(index);
  try {
    const Outcome outcome = call(kind);
    death_.returns(index);
    report.sums = outcome.sums;
    report.contributors = outcome.who.size();
    report.generation = outcome.who.generation();
  } catch (const Error& error) {
    if (!error.retryable()) throw;
    report.sums = std::string("error:") + name(error.code());
    report.generation = error.generation();
  }
  report.took = duration_cast<microseconds>(steady_clock::now() - begin);
  tell(report);
}

CallStream::Outcome CallStream::call(const std::string& kind) {
  if (kind == "allreduce") return allreduce();
  if (kind == "allocated") return allocated();
  if (kind == "named") return named();
  if (kind == "broadcast") return broadcast();
  if (kind == "allgather") return allgather();
  if (kind == "reduce_scatter") return reduce_scatter();
  if (kind == "alltoall") return alltoall();
  if (kind == "gather") return gather();
  if (kind == "scatter") return scatter();
  if (kind == "reduce") return reduce();
  if (kind == "scan") return scan();
  if (kind == "queued") return queued();
  if (kind == "step_group") return step_group();
  if (kind == "half_step") return half_step();
  if (kind == "named_kinds") return named_kinds();
  if (kind == "adasum") return adasum();
  if (kind == "hierarchical_adasum") return hierarchical_adasum();
  if (kind == "join") return join();
  if (kind.starts_with("sparse")) return sparse(kind);
  if (kind.starts_with("grouped")) return grouped(kind);
  throw std::invalid_argument("unknown kind " + kind);
}

CallStream::Outcome CallStream::grouped(const std::string& kind) const {
  const GroupedOutcome outcome = kind == "grouped_allgather"
                                     ? gather_groups(arguments_.elements, slot_)
                                     : scatter_groups(arguments_.elements, slot_);
  return {outcome.sums, outcome.who};
}

CallStream::Outcome CallStream::allreduce() {
  std::vector<std::int64_t> data(arguments_.elements, digit(slot_));
  const Contributors who = elastic::allreduce(std::span<std::int64_t>(data));
  const std::int64_t sum = only_value(data);
  check_digits(sum, who.size(), slot_);
  return {std::to_string(sum), who};
}

/// Reduces memory that others read in place, and that this worker changes as soon as the call has
/// returned. Calls alternate between in place and out of place.
CallStream::Outcome CallStream::allocated() {
  const auto input = input_.as<std::int64_t>();
  const auto output = (in_place_ = !in_place_) ? input : output_.as<std::int64_t>();
  std::fill(input.begin(), input.end(), digit(slot_));
  const Contributors who = elastic::allreduce(std::span<const std::int64_t>(input), output);
  const std::int64_t sum = only_value(output);
  check_digits(sum, who.size(), slot_);
  if (!in_place_ && only_value(input) != digit(slot_)) throw std::logic_error("changed input");
  return {std::to_string(sum), who};
}

/// Submitted in another order by each worker.
CallStream::Outcome CallStream::named() {
  std::vector<std::vector<std::int64_t>> tensors(kNamedTensors);
  for (auto& tensor : tensors) tensor.assign(arguments_.elements / kNamedTensors + 1, digit(slot_));
  std::array<std::size_t, kNamedTensors> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), own_);
  std::array<Work, kNamedTensors> works;
  for (const std::size_t i : order) {
    works[i] = elastic::allreduce_async("tensor " + std::to_string(i),
                                        std::span<std::int64_t>(tensors[i]));
  }
  Outcome outcome;
  for (std::size_t i = 0; i < kNamedTensors; ++i) {
    outcome.who = works[i].wait();
    const std::int64_t sum = only_value(tensors[i]);
    check_digits(sum, outcome.who.size(), slot_);
    outcome.sums += (i > 0 ? "," : "") + std::to_string(sum);
  }
  return outcome;
}

/// Broadcasts from rank 0, whichever worker that is in the present view.
CallStream::Outcome CallStream::broadcast() {
  std::vector<std::int64_t> data(arguments_.elements, digit(slot_));
  const Contributors who = elastic::broadcast(std::span<std::int64_t>(data), 0);
  return {std::to_string(only_value(data)), who};
}

/// Blocks of different sizes.
CallStream::Outcome CallStream::allgather() {
  const std::vector<std::int64_t> block(arguments_.elements + static_cast<std::size_t>(slot_),
                                        digit(slot_));
  const Gathered<std::int64_t> all = elastic::allgather(std::span<const std::int64_t>(block));
  std::int64_t sum = 0;
  std::span<const std::int64_t> rest(all.values);
  for (const std::size_t count : all.counts) {
    const std::int64_t value = only_value(rest.first(count));
    std::size_t owner = 0;
    while (digit(static_cast<int>(owner)) < value) ++owner;
    if (count != arguments_.elements + owner) throw std::logic_error("a block of another size");
    sum += value;
    rest = rest.subspan(count);
  }
  if (!rest.empty()) throw std::logic_error("more gathered than the counts say");
  check_digits(sum, all.contributors.size(), slot_);
  return {std::to_string(sum), all.contributors};
}

CallStream::Outcome CallStream::reduce_scatter() {
  const std::vector<std::int64_t> data(arguments_.elements, digit(slot_));
  const Scattered<std::int64_t> part = elastic::reduce_scatter(std::span<const std::int64_t>(data));
  const std::size_t share = arguments_.elements / part.contributors.size();
  if (part.values.size() < share || part.values.size() > share + 1 ||
      part.offset + part.values.size() > arguments_.elements) {
    throw std::logic_error("a part of " + std::to_string(part.values.size()) + " elements");
  }
  const std::int64_t sum = only_value(part.values);
  check_digits(sum, part.contributors.size(), slot_);
  return {std::to_string(sum), part.contributors};
}

/// A worker's blocks differ in size, and have its digit.
CallStream::Outcome CallStream::alltoall() {
  const Contributors to = elastic::context().members();
  std::vector<std::size_t> counts(to.size());
  std::iota(counts.begin(), counts.end(), arguments_.elements / to.size());
  const std::vector<std::int64_t> data(std::reduce(counts.begin(), counts.end()), digit(slot_));
  return sum_of_blocks(elastic::alltoall(data, counts, to));
}

/// The digits of the blocks, of which no two have the same, added up.
CallStream::Outcome CallStream::sum_of_blocks(const Gathered<std::int64_t>& all) const {
  std::int64_t sum = 0;
  std::span<const std::int64_t> rest(all.values);
  for (const std::size_t count : all.counts) {
    sum += only_value(rest.first(count));
    rest = rest.subspan(count);
  }
  if (!rest.empty()) throw std::logic_error("more elements than the counts say");
  check_digits(sum, all.contributors.size(), slot_);
  return {std::to_string(sum), all.contributors};
}

/// To rank 0, whichever worker that is. The others can tell only how many have contributed.
CallStream::Outcome CallStream::gather() {
  const std::vector<std::int64_t> block(arguments_.elements, digit(slot_));
  const Gathered<std::int64_t> all = elastic::gather(block, 0);
  if (!all.counts.empty()) (void)sum_of_blocks(all);
  return {"of_" + std::to_string(all.contributors.size()), all.contributors};
}

/// From rank 0. All blocks have its digit. The root may have laid them out for the members of an
/// earlier view, so a block may be smaller than this worker would have made it.
CallStream::Outcome CallStream::scatter() {
  const Contributors to = elastic::context().members();
  const std::size_t block = arguments_.elements / to.size() + 1;
  const std::vector<std::int64_t> data(block * to.size(), digit(slot_));
  const Scattered<std::int64_t> part = elastic::scatter(data, 0, {}, to);
  if (part.values.empty()) throw std::logic_error("a block is empty");
  return {std::to_string(only_value(part.values)), part.contributors};
}

/// To rank 0. Other tensors must stay as they are.
CallStream::Outcome CallStream::reduce() {
  std::vector<std::int64_t> data(arguments_.elements, digit(slot_));
  const Contributors who = elastic::reduce(data, 0);
  const std::int64_t sum = only_value(data);
  if (sum != digit(slot_) || who.size() == 1) check_digits(sum, who.size(), slot_);
  return {"of_" + std::to_string(who.size()), who};
}

/// The digits of the workers up to this one in rank order.
CallStream::Outcome CallStream::scan() {
  std::vector<std::int64_t> data(arguments_.elements, digit(slot_));
  const Contributors who = elastic::scan(data);
  const auto workers = who.workers();
  const auto self = std::find(workers.begin(), workers.end(), elastic::context().id());
  check_digits(only_value(data), static_cast<std::size_t>(self - workers.begin()) + 1, slot_);
  return {"of_" + std::to_string(who.size()), who};
}

/// Asynchronous calls without a name, and a blocking one that comes after them.
CallStream::Outcome CallStream::queued() {
  Context& context = elastic::context();
  std::vector<std::int64_t> first(arguments_.elements, digit(slot_));
  const std::vector<std::int64_t> block(arguments_.elements / 2 + 1, digit(slot_));
  const Work sum = context.allreduce_async(view(std::span(first)));
  const Pending<Gathered<std::int64_t>> gathered =
      context.allgather_async(std::span<const std::int64_t>(block));
  std::vector<std::int64_t> last(3, digit(slot_));
  const Contributors who = elastic::allreduce(last);
  if (!sum.ready() || !gathered.ready()) throw std::logic_error("a blocking call came before");
  check_digits(only_value(first), sum.wait().size(), slot_);
  check_digits(only_value(last), who.size(), slot_);
  const Outcome blocks = sum_of_blocks(gathered.wait());
  return {std::to_string(only_value(first)) + "," + blocks.sums + "," +
              std::to_string(only_value(last)),
          who};
}

/// The first worker has two tensors in a step, of which the others submit one, and go no further.
CallStream::Outcome CallStream::half_step() {
  std::vector<std::int64_t> common(arguments_.elements, digit(slot_));
  std::vector<std::int64_t> own(arguments_.elements, digit(slot_));
  if (slot_ > 0) {
    (void)elastic::allreduce_async("common", std::span<std::int64_t>(common)).wait();
    tell("half");
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  group_.allreduce("common", common);
  group_.allreduce("own", own);
  const Contributors who = group_.wait();
  return {std::to_string(only_value(own)), who};
}

/// Tensors that become ready one after another, in and out of place. All of them must have the same
/// contributors.
CallStream::Outcome CallStream::step_group() {
  const std::size_t elements = arguments_.elements / kNamedTensors + 1;
  std::vector<std::vector<std::int64_t>> tensors(kNamedTensors);
  const std::vector<std::int64_t> input(elements, digit(slot_));
  for (std::size_t i = 0; i < kNamedTensors; ++i) {
    tensors[i].assign(elements, i % 2 == 0 ? digit(slot_) : 0);
    const std::string name = "gradient " + std::to_string(i);
    if (i % 2 == 0) {
      group_.allreduce(name, tensors[i]);
    } else {
      group_.allreduce(name, view(std::span(input)), view(std::span(tensors[i])));
    }
    // As a backward pass makes them: so a death comes between two tensors, too.
    std::this_thread::sleep_for(microseconds(own_() % 50));
  }
  const Contributors who = group_.wait();
  const std::int64_t sum = only_value(tensors.front());
  check_digits(sum, who.size(), slot_);
  for (const auto& tensor : tensors) {
    if (only_value(tensor) != sum) throw std::logic_error("a step with two sets of contributors");
  }
  return {std::to_string(sum), who};
}

/// Named calls of several kinds, submitted in another order by each worker. The broadcast is from
/// rank 0 of the view in which it runs.
CallStream::Outcome CallStream::named_kinds() {
  Context& context = elastic::context();
  std::vector<std::int64_t> sum(arguments_.elements, digit(slot_));
  std::vector<std::int64_t> root(arguments_.elements, digit(slot_));
  const std::vector<std::int64_t> block(arguments_.elements, digit(slot_));
  const Contributors to = context.members();
  const std::vector<std::int64_t> blocks(to.size() * 7, digit(slot_));
  std::array<Work, 3> works;
  Pending<Gathered<std::int64_t>> gathered;
  Pending<Gathered<std::int64_t>> exchanged;
  std::array<int, 5> order{0, 1, 2, 3, 4};
  std::shuffle(order.begin(), order.end(), own_);
  for (const int which : order) {
    if (which == 0) works[0] = context.allreduce_async("sum", view(std::span(sum)));
    if (which == 1) works[1] = context.broadcast_async("root", view(std::span(root)), 0);
    if (which == 2) works[2] = context.barrier_async("barrier");
    if (which == 3) gathered = context.allgather_async("blocks", std::span(block));
    if (which == 4) exchanged = context.alltoall_async("exchange", std::span(blocks), {}, to);
  }
  wait_all(works);
  check_digits(only_value(sum), works[0].contributors().size(), slot_);
  const Outcome all = sum_of_blocks(gathered.wait());
  const Outcome some = sum_of_blocks(exchanged.wait());
  return {std::to_string(only_value(sum)) + "," + std::to_string(only_value(root)) + "," +
              all.sums + "," + some.sums,
          works[2].contributors()};
}

CallStream::Outcome CallStream::sparse(const std::string& kind) const {
  const SparseOutcome rows =
      kind == "sparse_async"
          ? sum_pending_sparse_rows(arguments_.elements, slot_)
          : sum_sparse_rows(arguments_.elements, slot_,
                            kind == "sparse" ? SparseForm::kGathered : SparseForm::kDense);
  return {rows.sums, rows.who};
}

/// Some workers make more named allreduces than others before they join.
CallStream::Outcome CallStream::join() {
  for (auto more = own_() % 4; more > 0; --more) {
    std::vector<std::int64_t> data(arguments_.elements, digit(slot_));
    elastic::allreduce_async("uneven", std::span(data)).wait();
    if (only_value(data) / digit(slot_) % 10 != 1) throw std::logic_error("a sum without its own");
  }
  const JoinOutcome end = elastic::join();
  return {"last_" + std::to_string(end.last_rank), end.contributors};
}

/// Each slot has dimensions of its own. Vectors that are orthogonal are added, whatever the order.
/// An average of hosts is rounded, by each rank that makes a share of it in an order of its own.
/// \returns what each slot's dimensions have become.
CallStream::Slots CallStream::sum_of_dimensions(ReduceOp op) {
  std::vector<double> data((arguments_.elements + kSlots - 1) / kSlots * kSlots);
  for (std::size_t i = static_cast<std::size_t>(slot_); i < data.size(); i += kSlots) {
    data[i] = static_cast<double>(digit(slot_));
  }
  Slots slots;
  slots.who = elastic::allreduce(std::span<double>(data), op);
  slots.values.assign(data.begin(), data.begin() + kSlots);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double first = data[i % kSlots];
    const double rounding = op == ReduceOp::kAdasum ? 0 : 1e-12 * first;
    if (std::abs(data[i] - first) > rounding) {
      throw std::logic_error("mixed values in one call");
    }
  }
  return slots;
}

CallStream::Outcome CallStream::adasum() {
  const Slots slots = sum_of_dimensions(ReduceOp::kAdasum);
  std::int64_t sum = 0;
  for (const double value : slots.values) sum += static_cast<std::int64_t>(value);
  check_digits(sum, slots.who.size(), slot_);
  return {std::to_string(sum), slots.who};
}

/// A slot's dimensions are divided by the number of contributors on its host.
CallStream::Outcome CallStream::hierarchical_adasum() {
  const Slots slots = sum_of_dimensions(ReduceOp::kHierarchicalAdasum);
  std::int64_t sum = 0;
  double hosts = 0;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (slots.values[slot] == 0) continue;
    const std::int64_t its = digit(static_cast<int>(slot));
    const double part = slots.values[slot] / static_cast<double>(its);
    if (std::abs(1 / part - std::round(1 / part)) > 1e-9) throw std::logic_error("no average");
    hosts += part;
    sum += its;
  }
  if (std::abs(hosts - std::round(hosts)) > 1e-9) throw std::logic_error("half a host");
  check_digits(sum, slots.who.size(), slot_);
  return {std::to_string(sum), slots.who};
}

}  // namespace elastic::fault
