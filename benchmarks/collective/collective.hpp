#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/collective/pattern.hpp"
#include "elastic/context.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// Whether a call writes its result to another tensor or over its input.
enum class Placement : std::uint8_t { kOutOfPlace, kInPlace };

inline constexpr int kRoot = 0;  ///< of calls that have one

/// The arguments of one call. The caller owns the memory of the tensors.
struct CallData {
  const Pattern& pattern;
  ReduceOp op;
  int rank;
  int ranks;
  TensorView input;        ///< of the size of the whole tensor
  TensorView output;       ///< of the same size
  CudaStream stream = {};  ///< for tensors on a device
};

/// The parts of a CallData that one call uses. In place, both start at the same address.
struct CallTensors {
  ConstTensorView input;
  TensorView output;
};

/// A collective operation that the benchmark measures.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual bool reduces() const = 0;  ///< whether it takes a ReduceOp
  virtual bool offers(Placement placement) const = 0;
  /// The ratio of busbw to algbw, as in nccl-tests: the least bytes that each worker has to send or
  /// receive under any algorithm, divided by the bytes of the whole tensor.
  virtual double bus_factor(int ranks) const = 0;
  /// The number of elements of the whole tensor has to be a multiple of this.
  virtual std::size_t granularity(int ranks) const = 0;

  /// Fills in this rank's input.
  virtual void fill(const CallData& data) const = 0;
  /// Performs the operation by elastic. All ranks call it with the same arguments.
  virtual Contributors run(Context& context, const CallData& data, Placement placement) = 0;
  /// The tensors for a call of a peer; `count_wrong` expects the result in their output.
  virtual CallTensors tensors(const CallData& data, Placement placement) = 0;
  /// The number of wrong elements in this rank's result, after `fill` and one call.
  virtual std::int64_t count_wrong(const CallData& data, Placement placement) const = 0;
};

/// The known names: "allreduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "gather",
/// "scatter", "reduce".
std::vector<std::string> collective_names();
/// `name` is one of `collective_names`.
std::unique_ptr<Collective> make_collective(const std::string& name);

}  // namespace elastic::bench
