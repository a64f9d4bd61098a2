#include "elastic/gradient_compressor.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype_names.hpp"
#include "base/log.hpp"
#include "base/training_figures.hpp"
#include "compression/backlog.hpp"
#include "compression/envelope.hpp"
#include "compression/finite.hpp"
#include "compression/half.hpp"
#include "compression/residuals.hpp"
#include "compression/tensor_block.hpp"
#include "elastic/error.hpp"

namespace elastic {
namespace {

using codecs::Message;
using codecs::TensorMemory;
using Tensors = std::span<const NamedTensor>;
using Traffic = GradientCompressor::Traffic;

constexpr const char* kReproducibleConflict =
    "; BatchPolicy::kReproducible needs sums of whole numbers and their maximum, and cannot be "
    "combined with compression: take the compression none, or the policy kFixedTotal";

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "GradientCompressor: " + message);
}

std::span<float> values_of(const NamedTensor& tensor) {
  return {static_cast<float*>(tensor.data.data), tensor.data.count};
}

bool is_on_device(const NamedTensor& tensor) {
  return tensor.data.device.kind != Device::Kind::kHost;
}

void check(const NamedTensor& tensor) {
  const std::string name = "tensor '" + std::string(tensor.name) + "'";
  const std::string type = dtype_name(tensor.data.dtype);
  if (tensor.name.empty()) invalid("a tensor has no name; its residual is kept under one");
  if (is_on_device(tensor)) {
    if (tensor.data.dtype != DType::kF32 && tensor.data.dtype != DType::kF64) {
      invalid(name + " is of " + type + ", not of floats (f32 or f64), as all on a device must be");
    }
  } else if (tensor.data.dtype != DType::kF32) {
    invalid(name + " is of " + type + ", not of floats (f32), as all in host memory must be" +
            (tensor.data.dtype == DType::kI64 ? kReproducibleConflict : ""));
  }
  if (tensor.data.data == nullptr && tensor.data.count > 0) invalid(name + " is at a null pointer");
  if (tensor.data.count >> 32U != 0) invalid(name + " has more than 2^32 - 1 elements; split it");
}

void check(Tensors tensors, ReduceOp op) {
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    invalid(std::string("the op is neither kSum nor kAverage; no others can be made of compressed "
                        "gradients") +
            (op == ReduceOp::kMax ? kReproducibleConflict : ""));
  }
  std::vector<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    check(tensor);
    names.push_back(tensor.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) invalid("two tensors are called '" + std::string(*twice) + "'");
}

/// Whether the tensors of a call lie on a device.
bool are_on_device(Tensors tensors, const Compression& compression) {
  const auto device = std::ranges::find_if(tensors, is_on_device);
  if (device == tensors.end()) return false;
  const std::string name = "tensor '" + std::string(device->name) + "' lies on a CUDA device";
  const auto host = std::ranges::find_if_not(tensors, is_on_device);
  if (host != tensors.end()) {
    invalid(name + ", and tensor '" + std::string(host->name) +
            "' in host memory: give all of a call where the same device has them, or in host "
            "memory");
  }
  if (compression.kind != CompressionKind::kNone && compression.kind != CompressionKind::kF16 &&
      compression.kind != CompressionKind::kBF16) {
    invalid(name +
            ", where only none, f16 and bf16 compress: take one of them, or copy the tensors to "
            "host memory before the call");
  }
  return true;
}

/// How `tensor` travels from a device.
CastTensor cast_tensor(const NamedTensor& tensor, const Compression& compression) {
  const bool whole = tensor.whole || compression.kind == CompressionKind::kNone;
  if (whole) return {tensor.data, tensor.data.dtype, 1};
  if (compression.kind == CompressionKind::kBF16) return {tensor.data, DType::kBF16, 1};
  return {tensor.data, DType::kF16, compression.scale};
}

/// The bytes that a rank sends in a ring allreduce of `bytes`: each part once to be reduced and
/// once to be distributed.
std::uint64_t ring_bytes(std::uint64_t bytes, std::size_t ranks) {
  return 2 * bytes * (ranks - 1) / ranks;
}

void add(Traffic& total, const Traffic& one) {
  total.residual_norm = one.residual_norm;
  total.tensors += one.tensors;
  total.encoded += one.encoded;
  total.sent += one.sent;
  total.sent_uncompressed += one.sent_uncompressed;
  total.non_finite += one.non_finite;
}

}  // namespace

/// Three ways to a sum in host memory: in place, as halves, or by an exchange of encoded blocks;
/// and one of tensors on a device. Each leaves the tensors alone until nothing can fail any more.
class GradientCompressor::Impl {
 public:
  Impl(Collectives its_collectives, const Compression& its_compression)
      : collectives(std::move(its_collectives)), compression(its_compression) {
    if (const std::string wrong = invalid_parameter(compression); !wrong.empty()) {
      invalid("compression: " + wrong);
    }
  }

  Contributors allreduce(Tensors tensors, ReduceOp op, CudaStream stream) {
    check(tensors, op);
    const bool on_device = are_on_device(tensors, compression);
    for (const NamedTensor& tensor : tensors) {
      if (!tensor.whole) residuals.require_size(tensor.name, tensor.data.count);
    }
    if (on_device) return allreduce_on_device(tensors, op, stream);
    if (stream.handle != nullptr) {
      invalid("a CUDA stream was given, and no tensor on a CUDA device: leave the stream out");
    }
    stage(tensors);
    Traffic traffic;
    for (const NamedTensor& tensor : tensors) traffic.tensors += tensor.data.bytes();
    Contributors contributors = sum(tensors, op, traffic);
    if (op == ReduceOp::kAverage) divide(tensors, static_cast<float>(contributors.size()));
    traffic.residual_norm = commit(tensors);
    traffic.sent_uncompressed = ring_bytes(traffic.tensors, contributors.size());
    for (const NamedTensor& tensor : tensors) {
      traffic.non_finite += static_cast<std::uint64_t>(std::ranges::count_if(
          values_of(tensor), [](float value) { return !codecs::is_finite(value); }));
    }
    note(traffic);
    return contributors;
  }

  Collectives collectives;
  Compression compression;
  codecs::Residuals residuals;
  bool whole = false;
  Traffic latest;
  Traffic total;

 private:
  Contributors allreduce_on_device(Tensors tensors, ReduceOp op, CudaStream stream) {
    if (!collectives.cast_allreduce)
      invalid("tensors on a device, and nothing that allreduces them");
    std::vector<CastTensor> cast_tensors;
    Traffic traffic;
    for (const NamedTensor& tensor : tensors) {
      cast_tensors.push_back(cast_tensor(tensor, compression));
      traffic.tensors += tensor.data.bytes();
      traffic.encoded += tensor.data.count * size_of(cast_tensors.back().wire_dtype);
    }
    Contributors contributors = collectives.cast_allreduce(cast_tensors, op, stream);
    traffic.sent = ring_bytes(traffic.encoded, contributors.size());
    traffic.sent_uncompressed = ring_bytes(traffic.tensors, contributors.size());
    note(traffic);
    return contributors;
  }

  void note(const Traffic& traffic) {
    latest = traffic;
    add(total, traffic);
    training_figures().gradient_bytes.fetch_add(traffic.tensors, std::memory_order_relaxed);
    training_figures().encoded_bytes.fetch_add(traffic.encoded, std::memory_order_relaxed);
  }

  void stage(Tensors tensors) {
    const bool has_momentum =
        compression.kind == CompressionKind::kTopK && compression.momentum != 0;
    memories_.clear();
    for (const NamedTensor& tensor : tensors) {
      memories_.push_back(nullptr);
      if (tensor.whole || compression.kind == CompressionKind::kNone) continue;
      memories_.back() = &residuals.of(tensor.name, tensor.data.count, has_momentum);
      codecs::stage(values_of(tensor), compression.momentum, *memories_.back());
    }
  }

  /// Puts the residuals in force; returns their norm.
  double commit(Tensors tensors) {
    double squares = 0;
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      if (memories_[at] == nullptr) continue;
      memories_[at]->commit();
      const double its = codecs::squared_norm(memories_[at]->kept.residual);
      squares += its;
      if (compression.kind == CompressionKind::kTwoBit) watch(tensors[at], *memories_[at], its);
    }
    return std::sqrt(squares);
  }

  void watch(const NamedTensor& tensor, TensorMemory& memory, double squares) {
    const auto count = static_cast<double>(std::max<std::size_t>(tensor.data.count, 1));
    const double held = std::sqrt(squares / count);
    if (!memory.backlog.grows(held, double{compression.threshold}) || warned_) return;
    warned_ = true;
    log::warn(
        "compression two_bit:{0}: tensor '{1}' holds back more and more of its gradient, {2:.3g} "
        "per element (root mean square) after {3} calls, while a call sends at most {0}; such a "
        "training fails; take a threshold in the size of the gradient's larger elements, or "
        "another kind of compression",
        compression.threshold, tensor.name, held, memory.calls);
  }

  Contributors sum(Tensors tensors, ReduceOp op, Traffic& traffic) {
    switch (compression.kind) {
      case CompressionKind::kNone:
        return sum_in_place(tensors, traffic);
      case CompressionKind::kF16:
        return sum_halves<float16>(tensors, compression.scale, traffic);
      case CompressionKind::kBF16:
        return sum_halves<bfloat16>(tensors, 1, traffic);
      default:
        return exchange(tensors, op, traffic);
    }
  }

  Contributors sum_in_place(Tensors tensors, Traffic& traffic) {
    std::vector<TensorView> views;
    for (const NamedTensor& tensor : tensors) views.push_back(tensor.data);
    return allreduce(views, traffic);
  }

  template <typename Half>
  Contributors sum_halves(Tensors tensors, float scale, Traffic& traffic) {
    std::vector<std::vector<Half>> halves(tensors.size());
    std::vector<TensorView> views;
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      views.push_back(tensors[at].data);
      if (memories_[at] == nullptr) continue;
      halves[at].resize(tensors[at].data.count);
      codecs::to_half<Half>(memories_[at]->staged.residual, scale, halves[at]);
      views.back() = view(std::span(halves[at]));
    }
    Contributors contributors = allreduce(views, traffic);
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      if (memories_[at] == nullptr) continue;
      codecs::from_half<Half>(halves[at], scale, values_of(tensors[at]));
    }
    return contributors;
  }

  Contributors allreduce(std::span<const TensorView> views, Traffic& traffic) {
    Contributors contributors = collectives.allreduce(views, ReduceOp::kSum);
    for (const TensorView& one : views) traffic.encoded += one.bytes();
    traffic.sent = ring_bytes(traffic.encoded, contributors.size());
    return contributors;
  }

  Contributors exchange(Tensors tensors, ReduceOp op, Traffic& traffic) {
    const CompressionKind kind = whole ? CompressionKind::kNone : compression.kind;
    Message message = codecs::begin_message(tensors, op);
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      if (memories_[at] == nullptr) {
        codecs::append_whole(values_of(tensors[at]), message);
      } else {
        codecs::append_block(compression, kind, *memories_[at], message);
      }
    }
    const Gathered<std::uint8_t> gathered = collectives.allgather(message);
    decode(tensors, gathered);
    traffic.encoded = message.size();
    traffic.sent = message.size() * (gathered.contributors.size() - 1);
    return gathered.contributors;
  }

  /// In rank order on all ranks, so that all get the same bits.
  void decode(Tensors tensors, const Gathered<std::uint8_t>& gathered) {
    auto messages = codecs::open_messages(gathered);
    std::vector<std::vector<float>> sums;
    for (const NamedTensor& tensor : tensors) {
      sums.emplace_back(tensor.data.count);
      for (auto& message : messages) {
        if (codecs::add_block(message, sums.back())) continue;
        const auto rank = static_cast<int>(&message - messages.data());
        throw Error(ErrorCode::kInternal,
                    "GradientCompressor: what rank " + std::to_string(rank) + " sent of tensor '" +
                        std::string(tensor.name) + "' is no block of its elements",
                    rank);
      }
    }
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      std::ranges::copy(sums[at], values_of(tensors[at]).begin());
    }
  }

  static void divide(Tensors tensors, float by) {
    for (const NamedTensor& tensor : tensors) {
      for (float& value : values_of(tensor)) value /= by;
    }
  }

  bool warned_ = false;                  // of a residual that grows without end
  std::vector<TensorMemory*> memories_;  // of the call's tensors; null where one goes whole
};

GradientCompressor::GradientCompressor(Collectives collectives, const Compression& compression)
    : impl_(std::make_unique<Impl>(std::move(collectives), compression)) {}
GradientCompressor::~GradientCompressor() = default;

Contributors GradientCompressor::allreduce(std::string_view name, TensorView data, ReduceOp op,
                                           CudaStream stream) {
  const NamedTensor tensor{name, data};
  return impl_->allreduce({&tensor, 1}, op, stream);
}

Contributors GradientCompressor::grouped_allreduce(Tensors tensors, ReduceOp op,
                                                   CudaStream stream) {
  return impl_->allreduce(tensors, op, stream);
}

void GradientCompressor::send_whole(bool whole) {
  impl_->whole = whole;
}

void GradientCompressor::rescale(const StepSize& before, const StepSize& now) {
  const double factor = (before.rate / before.batch) / (now.rate / now.batch);
  const auto by = static_cast<float>(factor);
  const bool positive = before.rate > 0 && before.batch > 0 && now.rate > 0 && now.batch > 0;
  if (!positive || !codecs::is_finite(by) || by <= 0) {
    const auto text = [](const StepSize& step) {
      return "rate " + std::to_string(step.rate) + " and batch " + std::to_string(step.batch);
    };
    invalid("rescale from " + text(before) + " to " + text(now) +
            ": rates and batches must be above 0, and the quotient of the step sizes finite as a "
            "float; leave out steps of rate 0");
  }
  if (by != 1) impl_->residuals.rescale(by);
}

void GradientCompressor::reset() {
  impl_->residuals.clear();
}

void GradientCompressor::begin_at(std::uint64_t step) {
  impl_->residuals.begin_at(step);
}

std::span<const float> GradientCompressor::residual(std::string_view name) const {
  const TensorMemory* const memory = impl_->residuals.find(name);
  return memory == nullptr ? std::span<const float>() : memory->kept.residual;
}

const Compression& GradientCompressor::compression() const noexcept {
  return impl_->compression;
}
const Traffic& GradientCompressor::latest() const noexcept {
  return impl_->latest;
}
const Traffic& GradientCompressor::total() const noexcept {
  return impl_->total;
}

}  // namespace elastic
