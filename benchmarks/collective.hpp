#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/pattern.hpp"
#include "elastic/context.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// Where a call leaves its result: in another tensor, or in the same.
enum class Placement : std::uint8_t { kOutOfPlace, kInPlace };

inline constexpr int kRoot = 0;  ///< of a broadcast

/// What one call works on. Views: the memory is the caller's.
struct CallData {
  const Pattern& pattern;
  ReduceOp op;
  int rank;
  int ranks;
  TensorView input;        ///< as many elements as the whole tensor has
  TensorView output;       ///< likewise
  CudaStream stream = {};  ///< for tensors on a device
};

/// Parts of a CallData, which start at the same place where the result is to be in place.
struct CallTensors {
  ConstTensorView input;
  TensorView output;
};

/// One operation as it is measured.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual bool reduces() const = 0;  ///< whether it takes a ReduceOp
  virtual bool offers(Placement placement) const = 0;
  /// busbw by algbw, as in nccl-tests: what each worker has to send or receive at least, whatever
  /// the algorithm, by the bytes of the whole tensor.
  virtual double bus_factor(int ranks) const = 0;
  /// The whole tensor has a multiple of so many elements.
  virtual std::size_t granularity(int ranks) const = 0;

  /// Fills in this rank's input.
  virtual void fill(const CallData& data) const = 0;
  /// All ranks call it alike. Throws elastic::Error.
  virtual Contributors run(Context& context, const CallData& data, Placement placement) = 0;
  /// What a call works on that leaves its result where `count_wrong` looks for it.
  virtual CallTensors tensors(const CallData& data, Placement placement) = 0;
  /// Elements of this rank's result that are wrong, after `fill` and one call.
  virtual std::int64_t count_wrong(const CallData& data, Placement placement) const = 0;
};

/// "allreduce", "all_gather", "reduce_scatter", "broadcast".
std::vector<std::string> collective_names();
/// One of these.
std::unique_ptr<Collective> make_collective(const std::string& name);

}  // namespace elastic::bench
