#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "elastic/allocation.hpp"
#include "elastic/compression.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/detail/process_owned.hpp"
#include "elastic/detail/ranges.hpp"
#include "elastic/diagnostics.hpp"
#include "elastic/error.hpp"
#include "elastic/learning_rate.hpp"
#include "elastic/options.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

class State;

/// Result of an allgather: the blocks of all contributors, one after another in rank order. For
/// bools `values` is a std::vector<bool>, here and below.
template <Element T>
struct Gathered {
  std::vector<T> values;
  std::vector<std::size_t> counts;  ///< elements of each contributor
  Contributors contributors;
};

/// Result of a reduce_scatter: this worker's part of the reduced tensor.
template <Element T>
struct Scattered {
  std::vector<T> values;
  std::size_t offset = 0;  ///< of the first value in the whole tensor, in elements
  Contributors contributors;
};

/// The result of an allgather in a tensor of the caller: the blocks of all contributors, one after
/// another in rank order, at its beginning.
struct GatheredBlocks {
  std::size_t count = 0;            ///< elements of all blocks together
  std::vector<std::size_t> counts;  ///< elements of each contributor
  Contributors contributors;
};

/// The result of a reduce_scatter in a tensor of the caller: this worker's part of the reduced
/// tensor, at its beginning.
struct ScatteredPart {
  std::size_t count = 0;   ///< elements of the part
  std::size_t offset = 0;  ///< of the first of them in the whole tensor, in elements
  Contributors contributors;
};

/// How `run` came to its end.
enum class RunOutcome : std::uint8_t {
  kFinished,  ///< the body returned: the training is done
  kRemoved,   ///< this worker was asked to leave; the others go on
  kStopped,   ///< the job was asked to stop
  kLeftOut,   ///< the job was done without this worker, which came too late or had been given up:
              ///< its state is not that of the training's end
};

/// One worker's membership in a job. Programs with one job use the free functions of
/// <elastic/elastic.hpp> on a default context instead.
///
/// Collectives. Every member must make the same calls in the same order ("program order"); named
/// asynchronous calls are exempt and may come in any order. Ranks that make different calls all get
/// an Error of kind kMismatch from that call, and the job goes on. When a member dies, the same
/// call returns the right result on all survivors: it was computed from exactly the contributions
/// of the members before the death or exactly those of the survivors, and `Contributors` tells
/// which. While a call in place runs its tensor is undefined; when it fails the tensor is as it
/// was, and an output apart from it is undefined. Besides kMismatch, every collective
/// throws kInvalidArgument (unsupported device, bad size), kEvicted, kRemoved, kStopped,
/// kBelowMinimum, kTimeout (no new view in time; see Options::view_timeout), kNotInitialized
/// (joining: collectives are for members; see `run`). Where a call ends in any other exception (no
/// memory, or what a function threw that the caller gave), this worker leaves the job, because the
/// others may have the result; every further call throws kInternal. They go on without it.
///
/// Results are bit-identical on all ranks.
///
/// Tensors on CUDA devices. Collectives take them, whatever the backend, with the stream that makes
/// them: see CudaStream for what is waited for. They go through pinned memory of the host, with all
/// that is said above; some ranks may have theirs on a device and others in host memory. Those of
/// one call that lie on a device lie on the same; others of a group may be in host memory, and so
/// may the input or the output of an allgather and a reduce_scatter. Besides the errors above:
/// kInvalidArgument for a tensor that is not where it is said to be, and for a stream that cannot
/// be waited for, or is given without a tensor on a device; kUnavailable where CUDA is missing or
/// fails. Where it fails when the others have the result already, this worker leaves the job, the
/// tensor is undefined, and every further call throws the same. A wait for a device has no end of
/// its own: one that lasts longer than Options::stall_warning is told of in the log.
/// A device's memory that is called host memory is noticed if the program used CUDA before it made
/// the context, or has given a tensor on a device since; otherwise it ends like any bad pointer.
///
/// Thread-safety: everything may be called from any thread. Unnamed collectives of one worker are
/// done one at a time; which order they have between threads is the program's business.
class ELASTIC_API Context {
 public:
  /// Connects to the job and waits until it has formed. A worker that joins a running job returns
  /// without being a member yet: `rank()` is -1 until `run` has it admitted.
  /// Throws kInvalidArgument (an option or variable is wrong, by name), kUnavailable (no server at
  /// the address within Options::init_timeout), kRefused (secret, version, a job that
  /// is over), kTimeout (too few workers came).
  explicit Context(Options options = {});
  /// Leaves the job without waiting for other workers, if `shutdown` was not called.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Says that the job is done, and waits for the other members to say so too, so that none of them
  /// lacks a last result. Members that do not say so within half a second go on without this one,
  /// which waits only until they have been given the results that it alone has. The whole wait ends
  /// after 30 s at the latest, and after 3 s where the rendezvous server is away.
  ///
  /// After an exception that left `run` the job is not done. This worker then says that it cannot
  /// go on, and why, and does not wait; the others go on without it. The launcher's last line
  /// names it and the exception. Where every member leaves in this way the job has failed.
  ///
  /// Waits for the named operations that this thread has submitted; those of other threads end with
  /// an error. The context can only be destroyed afterwards.
  void shutdown();

  int rank() const;        ///< in the present view; changes with it. -1 while joining
  int size() const;        ///< members of the present view; 0 while joining
  int local_rank() const;  ///< among the members on this host. -1 while joining
  int local_size() const;
  std::uint64_t generation() const;  ///< number of the present view; 0 while joining
  WorkerId id() const;               ///< this worker, as it appears in Contributors
  /// As they are in force, the environment's included.
  const Options& options() const;
  /// The latest change of the view that this worker went through as a member.
  ViewChange last_view_change() const;
  /// Where the time of the steps went that this worker has made in `run`. Any thread.
  StepTimes step_times() const;
  /// How operations are done in the present view, since its first one. Any thread.
  Tuning tuning() const;
  /// Options::resize_policy as the environment left it, for LearningRate::Options::policy. Any
  /// thread.
  ResizePolicy resize_policy() const;
  /// Options::compression as the environment left it, for a GradientCompressor. Any thread.
  Compression compression() const;

  /// Memory for tensors, which the other members on this host can read in place: an allreduce
  /// of large tensors (128 KiB and more) whose inputs and outputs are all in such memory, on all
  /// members, and all members on one host, saves the copies through shared memory. Otherwise it is
  /// memory like any other, and faster or slower nowhere. Zeros; of 0 bytes it is empty. Throws
  /// kUnavailable where the machine has not so much; a container that may use less is ended by the
  /// kernel. Outlives the context if need be. A child made by fork(2) sees the parent's, and must
  /// not write to it. Any thread.
  Allocation allocate(std::size_t bytes);

  /// Combines `in` of all members element by element into `out` on all of them. `in` and `out` have
  /// the same count and dtype, and are the same memory or do not overlap: kInvalidArgument
  /// otherwise, which takes two comparisons of addresses. There is no kAverage of bools.
  /// `stream` is for tensors on a CUDA device, here and below.
  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                         CudaStream stream = {});
  Contributors allreduce(TensorView data, ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
    return allreduce(data, data, op, stream);
  }
  template <Element T>
  Contributors allreduce(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(data), op);
  }
  template <Element T>
  Contributors allreduce(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(in), view(out), op);
  }
  /// The same for a vector, an array, or a span of fixed extent.
  template <detail::ContiguousRange R>
  Contributors allreduce(R&& data, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(detail::output_of(std::forward<R>(data))), op);
  }
  template <detail::ContiguousRange In, detail::ContiguousRange Out>
  Contributors allreduce(const In& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(detail::input_of(in)), view(detail::output_of(std::forward<Out>(out))),
                     op);
  }
  /// The same for one number: returns the result.
  template <detail::Number T>
  T allreduce(T value, ReduceOp op = ReduceOp::kSum) {
    detail::require_element<T>();
    allreduce(view(std::span<T>(&value, 1)), op);
    return value;
  }

  /// Allreduces several tensors, of any dtypes, in place, as one unit: after a failure either all
  /// of them hold the sums over the same contributors or none was changed. Throws
  /// kInvalidArgument for tensors that overlap, naming both.
  Contributors grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op = ReduceOp::kSum,
                                 CudaStream stream = {});

  /// `grouped_allreduce` for sums and averages of tensors that travel as halves; in host memory or
  /// on a device as ever. All members cast the same tensors in the same way: kMismatch otherwise.
  /// Under the backend nccl the device itself casts the tensors; where it cannot, since that
  /// library was built without CUDA's compiler, they go through host memory on all members.
  Contributors cast_allreduce(std::span<const CastTensor> tensors, ReduceOp op = ReduceOp::kSum,
                              CudaStream stream = {});

  /// Starts an allreduce in place under a name. Named operations may be submitted in any order and
  /// from any thread; tensors that are ready together are fused into buckets
  /// (Options::bucket_bytes). Every member must submit the name once before it is submitted again
  /// anywhere; kInvalidArgument while the same name is still under way here, or for an empty one.
  ///
  /// Each bucket has contributors of its own. When a worker dies within a step, the buckets that
  /// are complete have its part, and the others have not. So divide each sum by its own number of
  /// contributors or samples, and give all of them to `Sampler::commit`.
  ///
  /// A tensor on a CUDA device is copied to the host when its stream has come to it, and only then
  /// does it count as submitted; named tensors that this worker submits after it wait for it.
  Work allreduce_async(std::string_view name, TensorView data, ReduceOp op = ReduceOp::kSum,
                       CudaStream stream = {});
  template <Element T>
  Work allreduce_async(std::string_view name, std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(name, view(data), op);
  }
  template <detail::ContiguousRange R>
  Work allreduce_async(std::string_view name, R&& data, ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(name, view(detail::output_of(std::forward<R>(data))), op);
  }
  /// The same for a group, which stays one unit.
  Work grouped_allreduce_async(std::string_view name, std::span<const TensorView> tensors,
                               ReduceOp op = ReduceOp::kSum, CudaStream stream = {});

  /// Copies `data` of rank `root` of the present view to all; if that worker is gone before the
  /// call begins, of the worker that has the rank then. If the root dies before any survivor has
  /// all of it, every member gets the same retryable Error (kRootLost). `data` may lie on a CUDA
  /// device, which `stream` is for.
  Contributors broadcast(TensorView data, int root, CudaStream stream = {});
  template <Element T>
  Contributors broadcast(std::span<T> data, int root) {
    return broadcast(view(data), root);
  }
  template <detail::ContiguousRange R>
  Contributors broadcast(R&& data, int root) {
    return broadcast(view(detail::output_of(std::forward<R>(data))), root);
  }

  /// Gathers the blocks of all members, which may differ in count, on all of them.
  template <Element T>
  Gathered<T> allgather(std::span<const T> block) {
    Gathered<T> result;
    result.contributors = allgather(
        view(block), [&](std::span<const std::byte> bytes, std::vector<std::size_t> counts) {
          copy_out(bytes, result.values);
          result.counts = std::move(counts);
        });
    return result;
  }

  template <detail::ContiguousRange R>
  Gathered<detail::ElementOf<R>> allgather(const R& block) {
    return allgather(detail::input_of(block));
  }

  /// The same into `out`, of the same dtype, at whose beginning the blocks are when the call
  /// returns; what lies behind them stays as it is. `block` and `out` may lie on one CUDA device,
  /// either or both, which `stream` is for, and `block` may be a part of `out`. For an `out` on a
  /// device the call takes pinned memory for as many elements as it has room for, where it goes
  /// through host memory. How many there
  /// are depends on the members of the view that completes the call. Where they have no room, this
  /// member gets kInvalidArgument, which says how many they are: the call is done, on the other
  /// members too, an `out` on a device is as it was, and the job goes on. Members with the same
  /// room in `out` all get it, and can call again with more.
  GatheredBlocks allgather(ConstTensorView block, TensorView out, CudaStream stream = {});

  /// Combines `data` of all members; each gets one part of the result, of nearly equal sizes. Which
  /// part depends on rank and size in the view that completed the call.
  template <Element T>
  Scattered<T> reduce_scatter(std::span<const T> data, ReduceOp op = ReduceOp::kSum) {
    Scattered<T> result;
    result.contributors =
        reduce_scatter(view(data), op, [&](std::span<const std::byte> bytes, std::size_t offset) {
          copy_out(bytes, result.values);
          result.offset = offset;
        });
    return result;
  }

  template <detail::ContiguousRange R>
  Scattered<detail::ElementOf<R>> reduce_scatter(const R& data, ReduceOp op = ReduceOp::kSum) {
    return reduce_scatter(detail::input_of(data), op);
  }

  /// The same into `out`, of the same dtype, at whose beginning the part is when the call returns;
  /// what lies behind it stays as it is. `data` and `out` may lie on one CUDA device, either or
  /// both, which `stream` is for, and they may overlap. `out` needs room for the largest part,
  /// which is data.count divided by the size of the view that completes the call, rounded up: with
  /// room for data.count divided by the fewest members that the job may have, no call fails. Where
  /// it has less, kInvalidArgument as from an allgather.
  ScatteredPart reduce_scatter(ConstTensorView data, TensorView out, ReduceOp op = ReduceOp::kSum,
                               CudaStream stream = {});

  /// Returns when every member has called it.
  Contributors barrier();

  /// The same for tensors whose element type is known only at run time, or whose result there may
  /// be no room for yet. The callback is called once, before the function returns; the bytes are
  /// valid only in it. It may ask for rank, size and the like; collectives, Work::wait, `run` and
  /// `shutdown` throw Error(kInvalidArgument) in it, because they would wait for the call that it
  /// is a part of. Counts and offset in elements. With a tensor on a CUDA device, too, which
  /// `stream` is for, the bytes are in host memory.
  using TakeGathered =
      std::function<void(std::span<const std::byte> values, std::vector<std::size_t> counts)>;
  Contributors allgather(ConstTensorView block, const TakeGathered& take, CudaStream stream = {});
  using TakeScattered = std::function<void(std::span<const std::byte> values, std::size_t offset)>;
  Contributors reduce_scatter(ConstTensorView data, ReduceOp op, const TakeScattered& take,
                              CudaStream stream = {});

  /// Trains: makes `state` the same on all members, then calls `body`, which calls `state.commit()`
  /// after each step. Workers that join call `run` too: they are admitted at a commit of the
  /// others, receive the state, and enter the body in the middle of the training; so the body's
  /// loop goes by counters that are part of the state. Exceptions of `body` come out of `run`,
  /// except Error(kEvicted): this worker joins again, and calls the body again (Options::rejoin).
  /// The body may call everything but `shutdown` and `run`, which throw kInvalidArgument there.
  /// All members enter `run` together. Where one of them calls it again after an exception while
  /// the others are inside, all get kMismatch, which says so.
  /// Throws kInvalidArgument when this worker has called `run` before with a State of other
  /// entries, kRefused when its state has other names or sizes than the job's, and kMismatch when
  /// an object stays different from the others' whatever it loads. Where members of the first view
  /// differ, or an object does, the job fails: every worker gets the error.
  RunOutcome run(State& state, const std::function<void()>& body);

 private:
  template <typename T>
  static void copy_out(std::span<const std::byte> bytes, std::vector<T>& values) {
    const auto* first = reinterpret_cast<const T*>(bytes.data());
    values.assign(first, first + bytes.size() / sizeof(T));
  }

  class Impl;
  detail::ProcessOwned<Impl> impl_;
};

}  // namespace elastic
