// Peers for Gloo's allreduces. Each has its own connections.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gloo/algorithm.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/types.h>

#include "benchmarks/peers/gloo_mesh.hpp"
#include "benchmarks/peers/peer.hpp"
#include "collectives/backend/gloo/gloo_version.hpp"

namespace elastic::bench {
namespace {

using Mesh = std::shared_ptr<gloo::Context>;
using NewAlgorithm = gloo::AllreduceOptions::Algorithm;

/// Calls the function gloo::allreduce.
template <typename T>
class NewPeer final : public Peer {
 public:
  NewPeer(const PeerStart& start, Mesh mesh)
      : mesh_(std::move(mesh)),
        algorithm_(start.variant == "ring" ? NewAlgorithm::RING : NewAlgorithm::BCUBE),
        op_(start.op) {}

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override {
    const auto options = std::make_shared<gloo::AllreduceOptions>(mesh_);
    options->setAlgorithm(algorithm_);
    options->setReduceFunction(function());
    options->setOutput(static_cast<T*>(output.data), output.count);
    if (input.data != output.data) {  // Gloo only reads the input, in spite of the type
      options->setInput(static_cast<T*>(const_cast<void*>(input.data)), input.count);
    }
    return PreparedCall([options] {
      gloo::allreduce(*options);
      return Status();
    });
  }

 private:
  using Function = void (*)(void*, const void*, const void*, std::size_t);
  Function function() const {
    switch (op_) {
      case ReduceOp::kMin:
        return &gloo::min<T>;
      case ReduceOp::kMax:
        return &gloo::max<T>;
      case ReduceOp::kProduct:
        return &gloo::product<T>;
      default:
        return &gloo::sum<T>;
    }
  }

  const Mesh mesh_;
  const NewAlgorithm algorithm_;
  const ReduceOp op_;
};

/// Runs Gloo's older classes, made once for each tensor. They work in place only, so that a call
/// out of place includes a copy.
template <typename T>
class OldPeer final : public Peer {
 public:
  OldPeer(const PeerStart& start, Mesh mesh)
      : variant_(start.variant), op_(start.op), mesh_(std::move(mesh)) {}

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override {
    if (output.count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      return Status(Code::kInvalidArgument,
                    "this algorithm counts elements in int: choose a smaller -e");
    }
    auto& made = made_[{output.data, output.count}];
    if (made == nullptr) made = make(static_cast<T*>(output.data), static_cast<int>(output.count));
    return PreparedCall([input, output, algorithm = made.get()] {
      if (input.data != output.data) std::memcpy(output.data, input.data, input.bytes());
      algorithm->run();
      return Status();
    });
  }

 private:
  std::unique_ptr<gloo::Algorithm> make(T* data, int count) const {
    if (variant_ == "old-ring") return make<gloo::AllreduceRing<T>>(data, count);
    if (variant_ == "chunked") return make<gloo::AllreduceRingChunked<T>>(data, count);
    if (variant_ == "halving") return make<gloo::AllreduceHalvingDoubling<T>>(data, count);
    return make<gloo::AllreduceBcube<T>>(data, count);
  }
  template <typename Algorithm>
  std::unique_ptr<gloo::Algorithm> make(T* data, int count) const {
    return std::make_unique<Algorithm>(mesh_, std::vector<T*>{data}, count, function());
  }
  const gloo::ReductionFunction<T>* function() const {
    switch (op_) {
      case ReduceOp::kMin:
        return gloo::ReductionFunction<T>::min;
      case ReduceOp::kMax:
        return gloo::ReductionFunction<T>::max;
      case ReduceOp::kProduct:
        return gloo::ReductionFunction<T>::product;
      default:
        return gloo::ReductionFunction<T>::sum;
    }
  }

  const std::string variant_;
  const ReduceOp op_;
  const Mesh mesh_;
  // Kept until no rank sends any more: a message for a destroyed algorithm blocks its connection.
  std::map<std::pair<void*, std::size_t>, std::unique_ptr<gloo::Algorithm>> made_;
};

template <typename T>
std::unique_ptr<Peer> make(const PeerStart& start) {
  Mesh mesh = std::make_shared<GlooMesh>(start);
  if (start.variant == "ring" || start.variant == "bcube") {
    return std::make_unique<NewPeer<T>>(start, std::move(mesh));
  }
  return std::make_unique<OldPeer<T>>(start, std::move(mesh));
}

Status check(const PeerStart& start) {
  if (start.operation != "allreduce") {
    return Status(Code::kInvalidArgument, "of Gloo only allreduce is measured directly; " +
                                              start.operation + ": --backend gloo or mpi:direct");
  }
  if (start.dtype == DType::kBF16) {
    return Status(Code::kInvalidArgument, "Gloo has no bfloat16: choose another -d");
  }
  if (start.dtype == DType::kBool) {
    return Status(Code::kInvalidArgument, "Gloo has no bool: choose another -d");
  }
  if (start.op == ReduceOp::kAverage) {
    return Status(Code::kInvalidArgument, "Gloo has no average: choose another -o");
  }
  if (start.variant == "old-bcube" && !std::has_single_bit(static_cast<unsigned>(start.ranks))) {
    return Status(Code::kInvalidArgument,
                  "this algorithm is right for 2, 4, 8 ... ranks only, and these are " +
                      std::to_string(start.ranks) + ": choose another");
  }
  return {};
}

Result<std::unique_ptr<Peer>> open(const PeerStart& start) {
  if (Status status = check(start); !status.ok()) return status;
  switch (start.dtype) {
    case DType::kF16:
      return make<gloo::float16>(start);
    case DType::kF64:
      return make<double>(start);
    case DType::kI8:
      return make<std::int8_t>(start);
    case DType::kU8:
      return make<std::uint8_t>(start);
    case DType::kI32:
      return make<std::int32_t>(start);
    case DType::kI64:
      return make<std::int64_t>(start);
    case DType::kU32:
      return make<std::uint32_t>(start);
    case DType::kU64:
      return make<std::uint64_t>(start);
    case DType::kI16:
      return make<std::int16_t>(start);
    case DType::kU16:
      return make<std::uint16_t>(start);
    default:
      return make<float>(start);
  }
}

}  // namespace
}  // namespace elastic::bench

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const elastic::bench::PeerModule elastic_module = {
    {ELASTIC_MODULE_ABI, elastic::collectives::gloo_library}, elastic::bench::open};
