#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "elastic/compression.hpp"
#include "elastic/context.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/detail/grouped_allreduce.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// A tensor of floats, by the name that its residual is kept under.
struct NamedTensor {
  std::string_view name;  ///< of the residual
  TensorView data;        ///< summed in place
  bool whole = false;  ///< goes uncompressed in the same unit, without a residual: counts, losses
};

/// Allreduces gradients in fewer bytes, and keeps what was not sent for the next call (error
/// feedback): each call sends what it can of gradient + residual, and the rest is the new residual.
///
///     elastic::GradientCompressor compressor(elastic::context(), elastic::compression());
///     ...
///     const elastic::Contributors contributors = compressor.allreduce("weights", gradient);
///
/// Results are bit-identical on all ranks. kF16 and kBF16 are an allreduce of that type, whose
/// additions are made in f32 and rounded at each hop. All other kinds exchange the encoded
/// contributions of all ranks, and every rank decodes and adds them in rank order, in f32.
///
/// Failures. As Context's collectives: after the death of a member a call returns the sum over
/// exactly its contributors. The residual is taken over only when the call returns; when it throws,
/// tensors and residuals are as they were.
///
/// Residuals belong to this worker, and are not part of the State: a joiner's are zero. A worker
/// that will leave should call `send_whole` in front of its last step, or what it held back is
/// lost.
///
/// A kTwoBit threshold below the gradients' mean cannot carry them: the residual grows with every
/// call, and the training fails. Once the root mean square of a tensor's residual has been above
/// the threshold for 32 calls in a row, and has grown, a line in the log warns of it, once;
/// Traffic::residual_norm shows it as well.
///
/// NaN and Inf arrive: where some contribution has one, so has the sum, as NaN or Inf, in that
/// element or, for kInt8, as NaN in its block. If a tensor has several, kTopK may send only some.
/// No residual keeps one. kF16 overflows to Inf, and Traffic::non_finite tells.
///
/// Each tensor takes twice its size in memory beside it, with kTopK's momentum four times.
///
/// Tensors on a CUDA device are taken with all kinds but kTwoBit: those of a call all lie on one
/// device. Kernels encode and decode them there, and their residuals take twice their size of the
/// device's memory, with kTopK's momentum four times. Sums and residuals have the bits that they
/// have in host memory, so members may differ in where their tensors lie. The halves of kF16 and
/// kBF16 are summed by the backend, under nccl by the device itself; encoded blocks are exchanged
/// by way of host memory. A device that cannot load the kernels, or a build without them, has its
/// tensors compressed in host memory, where their residuals are then.
/// - kF16 and kBF16 take f64, too, by way of f32. A `whole` f64 tensor is sent unchanged.
/// - kNone keeps no residuals, and takes f32 and f64.
/// - Traffic::non_finite does not count their elements. NaN and Inf arrive all the same.
/// - A name stays with its place: with another device, or host memory instead of a device, a call
///   is kInvalidArgument until `reset`.
/// - If a device fails after the other members have the sums, the call throws kUnavailable, which
///   says that this worker is to be ended: its tensors are undefined.
///
/// Context::cast_allreduce casts without residuals.
///
/// Thread safety: none; one thread at a time. All members make the same calls in the same order,
/// with the same kind.
class ELASTIC_API GradientCompressor {
 public:
  /// Bytes of one call, or of all so far, and what was not sent.
  struct Traffic {
    std::uint64_t tensors = 0;  ///< bytes of the tensors
    std::uint64_t encoded = 0;  ///< bytes that this worker's contribution was encoded in
    /// Sent by this worker over links: the encoded contribution to each other member, or its part
    /// of a ring allreduce for kNone, kF16 and kBF16. Without the frames' headers.
    std::uint64_t sent = 0;
    std::uint64_t sent_uncompressed = 0;  ///< what a ring allreduce of the floats sends
    /// Elements of results in host memory that are NaN or Inf.
    std::uint64_t non_finite = 0;
    /// Euclidean norm of the residuals that this worker keeps after the call, over those in host
    /// memory. In `total()` that of the latest call.
    double residual_norm = 0;

    /// \returns whether all fields are equal.
    bool operator==(const Traffic&) const = default;
  };

  /// The collectives that it uses; each as in Context.
  struct Collectives {
    detail::GroupedAllreduce allreduce;  ///< Context::grouped_allreduce
    /// Context::allgather.
    std::function<Gathered<std::uint8_t>(std::span<const std::uint8_t>)> allgather;
    /// Context::cast_allreduce, for tensors on a device, which are refused without it. Its tensors
    /// are not cast.
    std::function<Contributors(std::span<const CastTensor>, ReduceOp, CudaStream)> cast_allreduce =
        {};
  };

  /// Refers to `context`, which must outlive it. `collectives` take the place of Context's.
  /// \throws Error kInvalidArgument for parameters out of range.
  /// \{
  GradientCompressor(Context& context, const Compression& compression)
      : GradientCompressor(
            {detail::grouped_allreduce_of(context),
             [&context](std::span<const std::uint8_t> block) { return context.allgather(block); },
             [&context](std::span<const CastTensor> tensors, ReduceOp op, CudaStream stream) {
               return context.cast_allreduce(tensors, op, stream);
             }},
            compression) {}
  GradientCompressor(Collectives collectives, const Compression& compression);
  /// \}
  ~GradientCompressor();
  GradientCompressor(const GradientCompressor&) = delete;
  GradientCompressor& operator=(const GradientCompressor&) = delete;

  /// Sums `data` over all members, in place; kAverage divides by the number of contributors.
  /// `stream` is for tensors on a CUDA device, as in Context.
  /// \returns the workers that contributed to the sum.
  /// \throws Error as every collective of Context.
  /// \throws Error kInvalidArgument: another op or dtype, an empty name, or a tensor whose size is
  ///   not what it was under this name, unless it goes `whole`.
  /// \throws Error kMismatch, on all members: they give different names, sizes or ops. kF16 and
  ///   kBF16 compare sizes only.
  /// \throws Error kUnavailable: CUDA is missing or fails, or a device has no memory left for the
  ///   residual.
  /// \{
  Contributors allreduce(std::string_view name, TensorView data, ReduceOp op = ReduceOp::kSum,
                         CudaStream stream = {});
  Contributors allreduce(std::string_view name, std::span<float> data,
                         ReduceOp op = ReduceOp::kSum) {
    return allreduce(name, view(data), op);
  }
  /// \}
  /// The same for several tensors, which do not overlap, in one exchange and as one unit: after a
  /// failure either all hold the sums over the same contributors, or none was changed. This
  /// includes the residuals.
  /// \returns the workers that contributed to the sums.
  /// \throws Error as `allreduce`.
  Contributors grouped_allreduce(std::span<const NamedTensor> tensors, ReduceOp op = ReduceOp::kSum,
                                 CudaStream stream = {});

  /// From the next call on everything is sent: gradient and residual in full precision, so that
  /// nothing is held back any more (kF16, kBF16: in their precision). The other members need not
  /// know. `false` ends it.
  void send_whole(bool whole = true);

  /// The factor of an update on a sum of gradients: rate / batch. `batch` is what the sum is
  /// divided by: samples, or for kAverage of means the number of contributors.
  struct StepSize {
    double rate = 0;   ///< the learning rate
    double batch = 0;  ///< what the sum is divided by
  };

  /// Call when the rate or the batch has changed: residuals are sums, so those of steps of size
  /// `before` are multiplied by (before.rate / before.batch) / (now.rate / now.batch). Late
  /// gradients then change the weights as much as they would have in their own step. Where rate and
  /// batch grow alike the factor is 1. kTopK's momentum stays.
  /// \throws Error kInvalidArgument, changing nothing, unless all four are positive and the factor
  ///   is positive and finite as a float.
  void rescale(const StepSize& before, const StepSize& now);

  /// Forgets all residuals and momentum; for a worker that comes back after an eviction, before
  /// `run`'s loop.
  void reset();

  /// Counts the calls of tensors seen from now on from `step` instead of 0; for joiners, which
  /// need no warm-up in the middle of a training.
  void begin_at(std::uint64_t step);

  /// \returns the unsent part of the tensor of this name; empty before its first call. That of a
  ///   tensor on a device is copied to host memory, for as long as no other is asked for.
  /// \throws Error kUnavailable: it cannot be copied from its device.
  std::span<const float> residual(std::string_view name) const;

  /// \returns kind and parameters.
  const Compression& compression() const noexcept;
  /// \returns the traffic of the latest call that returned.
  const Traffic& latest() const noexcept;
  /// \returns the traffic of all calls that returned.
  const Traffic& total() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic
