#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/detail/grouped_allreduce.hpp"
#include "elastic/detail/named.hpp"
#include "elastic/results.hpp"
#include "elastic/sampler.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// Random numbers (Philox4x32-10) that are a function of a key and of how many were taken before:
/// for dropout and augmentation that come out the same on whichever worker computes a batch, as
/// often as it is computed. Streams of different keys are independent.
///
/// A std::uniform_random_bit_generator. The standard library's distributions differ from one
/// library to the next; `uniform` and `below` do not.
class ELASTIC_API RandomStream {
 public:
  /// A stream is a function of its key.
  struct Key {
    std::uint64_t seed = 0;            ///< of the training
    std::uint64_t epoch = 0;           ///< of the training
    std::uint64_t step = 0;            ///< anything that differs between the steps of an epoch
    std::uint32_t virtual_worker = 0;  ///< in that step
  };
  /// As the standard's generators call the type of their numbers.
  using result_type = std::uint32_t;  // NOLINT(readability-identifier-naming): the standard's

  /// Begins the stream of `key`.
  explicit RandomStream(const Key& key);

  /// \returns the least number that comes.
  static constexpr result_type min() { return 0; }
  /// \returns the greatest number that comes.
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  /// Draws 32 random bits. A stream repeats itself after 2^34 draws.
  /// \returns the bits.
  result_type operator()();

  /// \returns a number uniform in [0, 1), in steps of 2^-53.
  double uniform();
  /// \returns a number uniform among the whole numbers below `bound`.
  /// \throws Error kInvalidArgument if `bound` is 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t word();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_;  // words of the block
};

namespace detail {
class ExactSum;
}

/// The change of a step's batch when workers join and leave.
enum class BatchPolicy : std::uint8_t {
  kPerWorker,     ///< a batch for each worker: the global batch follows their number
  kFixedTotal,    ///< one batch, in equal parts for virtual workers: it is always the same
  kReproducible,  ///< as kFixedTotal, and its sums have the same bits for any workers
};

/// As command lines may call them.
inline constexpr std::array<Named<BatchPolicy>, 3> kBatchPolicies{{
    {"per_worker", BatchPolicy::kPerWorker},
    {"fixed_total", BatchPolicy::kFixedTotal},
    {"reproducible", BatchPolicy::kReproducible},
}};

/// A part of a step's batch, for this worker to compute.
struct VirtualBatch {
  std::size_t virtual_worker = 0;        ///< under kPerWorker: this worker's rank among the members
  std::span<const std::size_t> samples;  ///< indices, valid until the function returns
  /// A function of the sampler's seed, epoch, samples used before in the epoch, and virtual worker.
  RandomStream random;
};

/// The sum of a step; the same on all workers.
struct BatchSum {
  Contributors contributors;   ///< of the last collective: the workers after the step
  std::size_t samples = 0;     ///< that are in the sum
  std::size_t full_batch = 0;  ///< what it would be were this not an epoch's tail: for the rate
};

/// Sums the gradients of a step's batch over all workers, as the policy says:
///
///     elastic::GlobalBatch batches(elastic::context(), sampler, {.batch = 64});
///     state.add("batches", batches);
///     ...
///     const auto sum = batches.sum(tensors, [&](elastic::VirtualBatch& part) {
///       for (const std::size_t index : part.samples) ... add the gradient to the tensors ...
///     });
///
/// It draws from the sampler and commits to it: a trainer calls neither `next` nor `commit`.
///
/// Under kFixedTotal and kReproducible a step is of `virtual_workers` virtual batches. They are
/// assigned to the members as evenly as possible (where there are more members than virtual
/// workers, some compute nothing in the step, and take part in it all the same). Virtual worker v
/// of a step has the same slice of the epoch and the same random numbers on any member. If a member
/// dies within the step, the others compute its virtual workers in the same step, so the sum is
/// over all virtual batches, always.
///
/// Under kReproducible each tensor is summed as whole multiples of a power of two that suits its
/// greatest magnitude over all virtual workers. Such sums are exact, and so have the same bits in
/// whatever order and on however many workers they are made. A tensor in which any of them has a
/// NaN or an infinity is all NaN afterwards. It is up to `add_gradients` to give the same bits for
/// the same part on all workers: the same program on the same kind of processor.
///
/// Add it to the `State`: a joiner takes over the job's policy, whatever its own options said.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API GlobalBatch {
 public:
  /// How a step's batch is made.
  struct Options {
    BatchPolicy policy = BatchPolicy::kPerWorker;  ///< what happens as workers join and leave
    /// Samples in a step, of each worker under kPerWorker, in all otherwise; at least 1.
    std::size_t batch = 0;
    /// Parts of a step, 1 to 2^20, into which `batch` divides; kPerWorker has none, and ignores it.
    std::size_t virtual_workers = 1;

    /// \returns whether all fields are equal.
    bool operator==(const Options&) const = default;
  };
  /// Adds to the tensors, which `sum` sets to zero before, the sums over the part's samples;
  /// it is not called for parts without samples. It may be called any number of times in a step,
  /// for the same part again, so it keeps nothing elsewhere. It calls no collective, `commit`,
  /// `run` or `shutdown`: these throw Error(kInvalidArgument) there, because members call it
  /// different numbers of times. Its exceptions come out of `sum`.
  using AddGradients = std::function<void(VirtualBatch&)>;

  /// Refers to sampler and context, which must outlive it. `allreduce` takes the place of
  /// Context::grouped_allreduce.
  /// \throws Error kInvalidArgument: an option is out of range, or the batch does not divide among
  ///   the virtual workers; the message names what would do.
  /// \{
  GlobalBatch(Context& context, Sampler& sampler, const Options& options)
      : GlobalBatch(detail::grouped_allreduce_of(context), sampler, options) {}
  GlobalBatch(detail::GroupedAllreduce allreduce, Sampler& sampler, const Options& options);
  /// \}
  ~GlobalBatch();
  GlobalBatch(const GlobalBatch&) = delete;
  GlobalBatch& operator=(const GlobalBatch&) = delete;

  /// Makes a step's sums in `tensors`, which are in host memory; under kReproducible of real
  /// numbers. They do not overlap. All workers call it alike. After an error the tensors are
  /// undefined, and the step is not taken.
  /// \returns what is in the sum.
  /// \throws Error as Context::grouped_allreduce; also kInvalidArgument for tensors that it cannot
  ///   take. Exceptions of `add_gradients` pass through.
  BatchSum sum(std::span<const TensorView> tensors, const AddGradients& add_gradients);

  /// \returns the options; after a join those of the job.
  const Options& options() const noexcept { return options_; }

  /// \returns the options as bytes, for State.
  std::vector<std::byte> save() const;
  /// Reverse of `save`.
  /// \throws Error kInvalidArgument, changing nothing, on bytes that are no options.
  void load(std::span<const std::byte> bytes);

 private:
  using Tensors = std::span<const TensorView>;

  using Samples = std::span<const std::size_t>;

  Contributors sum_own(Tensors tensors, Samples own, const AddGradients& add_gradients);
  Contributors sum_virtual(Tensors tensors, const AddGradients& add_gradients);
  Contributors sum_exactly(Tensors tensors, const AddGradients& add_gradients);
  void compute(std::size_t virtual_worker, Samples samples, const AddGradients& add_gradients);

  detail::GroupedAllreduce allreduce_;
  Sampler& sampler_;
  Options options_;
  std::unique_ptr<detail::ExactSum> exact_;  // its buffers are used again in the next step
};

/// The contributors and samples of an `average_by_samples`.
struct SampleAverage {
  Contributors contributors;  ///< the workers that contributed to it
  std::uint64_t samples = 0;  ///< of all contributors together
};

/// Averages gradients over samples, for workers with unequal batches: `sums` hold this
/// worker's sums of gradients over `samples` samples, and afterwards, on all workers alike, the sum
/// over all of them divided by the true number of samples, that of the contributors.
/// (ReduceOp::kAverage divides by workers, and so gives a sample in a small batch more weight.)
///
/// A worker that has used up its data goes on calling with zeros and 0 samples, until
/// SampleAverage::samples is 0: then no worker has any left, which all learn in the same call, and
/// the tensors are zero. So workers with unequal amounts of data end an epoch together.
///
/// Sums and count are one unit, as in Context::grouped_allreduce, which `allreduce` takes the place
/// of.
/// \returns the contributors and the number of samples.
/// \throws Error as Context::grouped_allreduce; also kInvalidArgument if a tensor has whole numbers
///   or is not in host memory.
/// \{
ELASTIC_API SampleAverage average_by_samples(const detail::GroupedAllreduce& allreduce,
                                             std::span<const TensorView> sums,
                                             std::uint64_t samples);
inline SampleAverage average_by_samples(Context& context, std::span<const TensorView> sums,
                                        std::uint64_t samples) {
  return average_by_samples(detail::grouped_allreduce_of(context), sums, samples);
}
/// \}

}  // namespace elastic
