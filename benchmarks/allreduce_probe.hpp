#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/pattern.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

/// What all ranks have measured together for one size.
struct Measurement {
  std::vector<double> times_us;       ///< of each call: the mean over the ranks
  std::optional<std::int64_t> wrong;  ///< elements, of all ranks; nothing where it was not checked
};

/// Times allreduces on this rank. Belongs to the main thread.
class AllreduceProbe {
 public:
  AllreduceProbe(Context& context, const AllreduceOptions& options);

  /// All ranks call it alike. kPeerLost when a worker was lost. Throws elastic::Error.
  Result<Measurement> measure(std::size_t count, bool in_place);

 private:
  Status call(std::size_t count, bool in_place);
  Result<std::int64_t> count_wrong(std::size_t count, bool in_place);
  Status check_complete(const Contributors& contributors) const;
  TensorView input(std::size_t count) { return {input_.data(), count, options_.dtype}; }
  TensorView output(std::size_t count) { return {output_.data(), count, options_.dtype}; }

  Context& context_;
  const AllreduceOptions& options_;
  const int ranks_;
  Pattern pattern_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

}  // namespace elastic::bench
