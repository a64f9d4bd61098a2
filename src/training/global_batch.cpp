#include "elastic/global_batch.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/in_callback.hpp"
#include "elastic/error.hpp"
#include "training/bytes.hpp"
#include "training/exact_sum.hpp"
#include "training/tensor_sums.hpp"
#include "training/work_assignment.hpp"

namespace elastic {
namespace {

constexpr std::size_t kMostVirtualWorkers = std::size_t{1} << 20;

[[noreturn]] void invalid_batch(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "GlobalBatch: " + message);
}

/// Numbers of virtual workers that a batch can have, for people: "1, 2, 4, 8".
std::string divisors(std::size_t batch) {
  constexpr std::size_t kMostSearched = 4096;
  std::string list;
  for (std::size_t count = 1; count <= batch && count <= kMostSearched; ++count) {
    if (batch % count == 0) list += (list.empty() ? "" : ", ") + std::to_string(count);
  }
  return list;
}

void check(const GlobalBatch::Options& options) {
  if (options.batch == 0) invalid_batch("the batch is 0 samples; give at least 1");
  if (options.policy == BatchPolicy::kPerWorker) return;
  const std::size_t count = options.virtual_workers;
  if (count == 0 || count > kMostVirtualWorkers) {
    invalid_batch("there are " + std::to_string(count) + " virtual workers; give 1 to " +
                  std::to_string(kMostVirtualWorkers));
  }
  if (options.batch % count == 0) return;
  const std::size_t below = options.batch - options.batch % count;
  invalid_batch("a batch of " + std::to_string(options.batch) + " samples does not divide among " +
                std::to_string(count) + " virtual workers; give a batch of " +
                (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + count) +
                ", or as many virtual workers as divide it: " + divisors(options.batch));
}

}  // namespace

GlobalBatch::GlobalBatch(detail::GroupedAllreduce allreduce, Sampler& sampler,
                         const Options& options)
    : allreduce_(std::move(allreduce)),
      sampler_(sampler),
      options_(options),
      exact_(std::make_unique<detail::ExactSum>()) {
  check(options);
}

GlobalBatch::~GlobalBatch() = default;

BatchSum GlobalBatch::sum(Tensors tensors, const AddGradients& add_gradients) {
  const bool per_worker = options_.policy == BatchPolicy::kPerWorker;
  training::check_tensors("GlobalBatch", tensors, options_.policy == BatchPolicy::kReproducible);
  if (sampler_.members().empty()) {
    throw Error(ErrorCode::kNotInitialized,
                "GlobalBatch: sum() before the sampler knows the members; add the sampler to the "
                "State that is given to elastic::run, or call its set_members() first");
  }
  Samples own;
  if (per_worker) {
    own = sampler_.next(options_.batch);
  } else {
    sampler_.draw(options_.virtual_workers, options_.batch / options_.virtual_workers);
  }
  const std::size_t before = sampler_.done_in_epoch();
  BatchSum sum;
  switch (options_.policy) {
    case BatchPolicy::kPerWorker:
      sum.contributors = sum_own(tensors, own, add_gradients);
      break;
    case BatchPolicy::kFixedTotal:
      sum.contributors = sum_virtual(tensors, add_gradients);
      break;
    case BatchPolicy::kReproducible:
      sum.contributors = sum_exactly(tensors, add_gradients);
      break;
  }
  sampler_.commit(sum.contributors);
  sum.samples = sampler_.done_in_epoch() - before;
  sum.full_batch = options_.batch * (per_worker ? sum.contributors.size() : 1);
  return sum;
}

/// The samples of a lost worker go back to the sampler.
Contributors GlobalBatch::sum_own(Tensors tensors, Samples own, const AddGradients& add_gradients) {
  training::set_to_zero(tensors);
  const auto members = sampler_.members();
  const auto rank = std::ranges::find(members, sampler_.self()) - members.begin();
  compute(static_cast<std::size_t>(rank), own, add_gradients);
  return allreduce_(tensors, ReduceOp::kSum);
}

/// In rounds: the virtual workers of lost members are another round for the rest.
Contributors GlobalBatch::sum_virtual(Tensors tensors, const AddGradients& add_gradients) {
  training::WorkAssignment assignment(options_.virtual_workers, sampler_.members());
  std::vector<std::byte> rounds_before;
  for (;;) {
    training::set_to_zero(tensors);
    for (const std::size_t one : assignment.of(sampler_.self())) {
      compute(one, sampler_.share(one), add_gradients);
    }
    Contributors contributors = allreduce_(tensors, ReduceOp::kSum);
    if (!rounds_before.empty()) training::add(rounds_before, tensors);
    if (assignment.complete(contributors.workers()) == 0) return contributors;
    training::copy_to(rounds_before, tensors);
  }
}

/// The same, twice: for the magnitudes and then for the sums. The virtual workers of a worker that
/// is lost in between are computed again, and is within the magnitudes, because it is the same
/// again.
Contributors GlobalBatch::sum_exactly(Tensors tensors, const AddGradients& add_gradients) {
  training::WorkAssignment assignment(options_.virtual_workers, sampler_.members());
  exact_->begin(tensors, options_.virtual_workers);
  const auto compute_assigned = [&] {
    for (const std::size_t one : assignment.of(sampler_.self())) {
      if (exact_->has(one)) continue;
      training::set_to_zero(tensors);
      compute(one, sampler_.share(one), add_gradients);
      exact_->keep(one);
    }
  };
  Contributors contributors;
  do {
    compute_assigned();
    const TensorView magnitudes = exact_->magnitudes();
    contributors = allreduce_(std::span(&magnitudes, 1), ReduceOp::kMax);
  } while (assignment.complete(contributors.workers()) > 0);

  exact_->agree();
  assignment.reopen();
  for (;;) {
    compute_assigned();
    exact_->sum(assignment.of(sampler_.self()));
    const TensorView sums = exact_->sums();
    contributors = allreduce_(std::span(&sums, 1), ReduceOp::kSum);
    if (assignment.complete(contributors.workers()) == 0) break;
    exact_->put_aside();
  }
  exact_->finish();
  return contributors;
}

void GlobalBatch::compute(std::size_t virtual_worker, Samples samples,
                          const AddGradients& add_gradients) {
  if (samples.empty()) return;
  const RandomStream::Key key{sampler_.seed(), sampler_.epoch(), sampler_.done_in_epoch(),
                              static_cast<std::uint32_t>(virtual_worker)};
  VirtualBatch part{virtual_worker, samples, RandomStream(key)};
  const InCallback callback("the function given to GlobalBatch::sum");
  add_gradients(part);
}

std::vector<std::byte> GlobalBatch::save() const {
  std::vector<std::byte> bytes;
  training::put(bytes, static_cast<std::uint64_t>(options_.policy));
  training::put(bytes, std::uint64_t{options_.batch});
  training::put(bytes, std::uint64_t{options_.virtual_workers});
  return bytes;
}

void GlobalBatch::load(std::span<const std::byte> bytes) {
  training::ByteReader reader(bytes);
  std::uint64_t policy = 0;
  std::uint64_t batch = 0;
  std::uint64_t virtual_workers = 0;
  const bool whole = reader.take(policy) && reader.take(batch) && reader.take(virtual_workers);
  if (!whole || reader.left() != 0 ||
      policy > static_cast<std::uint64_t>(BatchPolicy::kReproducible)) {
    invalid_batch(std::to_string(bytes.size()) + " bytes are not saved options");
  }
  const Options options{static_cast<BatchPolicy>(policy), batch, virtual_workers};
  check(options);
  options_ = options;
}

}  // namespace elastic
