#include "elastic/gradient_compressor.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/training_figures.hpp"
#include "compression/backlog.hpp"
#include "compression/device_allreduce.hpp"
#include "compression/envelope.hpp"
#include "compression/finite.hpp"
#include "compression/half.hpp"
#include "compression/host_copies.hpp"
#include "compression/residuals.hpp"
#include "compression/ring_bytes.hpp"
#include "compression/tensor_block.hpp"
#include "compression/tensor_checks.hpp"
#include "elastic/error.hpp"

namespace elastic {
namespace {

using codecs::invalid;
using codecs::Message;
using codecs::ring_bytes;
using codecs::TensorMemory;
using Tensors = std::span<const NamedTensor>;
using Traffic = GradientCompressor::Traffic;

std::span<float> values_of(const NamedTensor& tensor) {
  return {static_cast<float*>(tensor.data.data), tensor.data.count};
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

/// Three ways to a sum in host memory: in place, as halves, or by an exchange of encoded blocks.
/// Tensors on a device go the same ways there (DeviceAllreduce), or through host memory. Each way
/// leaves the tensors alone until nothing can fail any more.
class GradientCompressor::Impl {
 public:
  Impl(Collectives its_collectives, const Compression& its_compression)
      : collectives(std::move(its_collectives)), compression(its_compression) {
    if (const std::string wrong = invalid_parameter(compression); !wrong.empty()) {
      invalid("compression: " + wrong);
    }
  }

  Contributors allreduce(Tensors tensors, ReduceOp op, CudaStream stream) {
    codecs::check_tensors(tensors, op);
    const bool on_device = codecs::are_on_device(tensors, compression);
    for (const NamedTensor& tensor : tensors) {
      if (!tensor.whole) residuals.require_size(tensor.name, tensor.data.count);
    }
    Traffic traffic;
    for (const NamedTensor& tensor : tensors) traffic.tensors += tensor.data.bytes();
    Contributors contributors = on_device ? allreduce_on_device(tensors, op, stream, traffic)
                                          : allreduce_on_host(tensors, op, stream, traffic);
    traffic.sent_uncompressed = ring_bytes(traffic.tensors, contributors.size());
    note(traffic);
    return contributors;
  }

  void rescale(float by) {
    residuals.rescale(by);
    if (devices_) codecs::require_device(devices_->residuals().rescale(by));
  }

  void reset() {
    residuals.clear();
    if (devices_) devices_->residuals().clear();
  }

  void begin_at(std::uint64_t step) {
    first_ = step;
    residuals.begin_at(step);
    if (devices_) devices_->residuals().begin_at(step);
  }

  std::span<const float> residual(std::string_view name) {
    const TensorMemory* const memory = residuals.find(name);
    if (memory != nullptr) return memory->kept.residual;
    if (!devices_) return {};
    copied_residual_ = devices_->residual(name);
    return copied_residual_;
  }

  Collectives collectives;
  Compression compression;
  codecs::Residuals residuals;
  bool whole = false;
  Traffic latest;
  Traffic total;

 private:
  Contributors allreduce_on_host(Tensors tensors, ReduceOp op, CudaStream stream,
                                 Traffic& traffic) {
    if (stream.handle != nullptr) {
      invalid("a CUDA stream was given, and no tensor on a CUDA device: leave the stream out");
    }
    for (const NamedTensor& tensor : tensors) {
      if (!tensor.whole && devices_ && devices_->residuals().find(tensor.name) != nullptr) {
        invalid_move(tensor.name, "in host memory", "on a CUDA device");
      }
    }
    stage(tensors);
    Contributors contributors = sum(tensors, op, traffic);
    if (op == ReduceOp::kAverage) divide(tensors, static_cast<float>(contributors.size()));
    traffic.residual_norm = commit(tensors);
    for (const NamedTensor& tensor : tensors) {
      traffic.non_finite += static_cast<std::uint64_t>(std::ranges::count_if(
          values_of(tensor), [](float value) { return !codecs::is_finite(value); }));
    }
    return contributors;
  }

  Contributors allreduce_on_device(Tensors tensors, ReduceOp op, CudaStream stream,
                                   Traffic& traffic) {
    if (!collectives.cast_allreduce)
      invalid("tensors on a device, and nothing that allreduces them");
    if (compression.kind == CompressionKind::kNone) {
      return allreduce_uncompressed(tensors, op, stream, traffic);
    }
    if (!devices_) {
      devices_ = std::make_unique<codecs::DeviceAllreduce>(collectives, compression);
      devices_->residuals().begin_at(first_);
    }
    codecs::DeviceCodec* const codec = devices_->codec_of(tensors, stream);
    if (codec == nullptr) return allreduce_by_host(tensors, op, stream, traffic);
    for (const NamedTensor& tensor : tensors) {
      if (!tensor.whole && residuals.find(tensor.name) != nullptr) {
        invalid_move(tensor.name, "on a CUDA device", "in host memory");
      }
    }
    return devices_->allreduce(*codec, tensors, op, stream, whole, traffic);
  }

  /// The residual of a tensor stays where it is.
  [[noreturn]] static void invalid_move(std::string_view name, const char* now,
                                        const char* before) {
    invalid("tensor '" + std::string(name) + "' is " + now + ", and was " + before +
            " before, where its residual is; give it a name of its own, or call reset()");
  }

  Contributors allreduce_uncompressed(Tensors tensors, ReduceOp op, CudaStream stream,
                                      Traffic& traffic) {
    std::vector<CastTensor> sent;
    for (const NamedTensor& tensor : tensors) {
      sent.push_back({tensor.data, tensor.data.dtype, 1});
      traffic.encoded += tensor.data.bytes();
    }
    Contributors contributors = collectives.cast_allreduce(sent, op, stream);
    traffic.sent = ring_bytes(traffic.encoded, contributors.size());
    return contributors;
  }

  /// The tensors of a device without kernels.
  Contributors allreduce_by_host(Tensors tensors, ReduceOp op, CudaStream stream,
                                 Traffic& traffic) {
    codecs::HostCopies copies(devices_->devices(), tensors, stream);
    stage(copies.tensors());
    Contributors contributors = sum(copies.tensors(), op, traffic);
    copies.write_back(op == ReduceOp::kAverage ? static_cast<float>(contributors.size()) : 1.0F);
    traffic.residual_norm = commit(copies.tensors());
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

  std::unique_ptr<codecs::DeviceAllreduce> devices_;  // null before a tensor is on one
  std::vector<float> copied_residual_;                // from a device
  std::uint64_t first_ = 0;                           // number of the first calls
  bool warned_ = false;                               // of a residual that grows without end
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
  if (by != 1) impl_->rescale(by);
}

void GradientCompressor::reset() {
  impl_->reset();
}

void GradientCompressor::begin_at(std::uint64_t step) {
  impl_->begin_at(step);
}

std::span<const float> GradientCompressor::residual(std::string_view name) const {
  return impl_->residual(name);
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
