#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compression/backlog.hpp"

namespace elastic::codecs {

/// The values that a tensor's calls keep for the next calls.
struct Remainder {
  std::vector<float> residual;
  std::vector<float> momentum;  // empty: the kind has none
};

/// One tensor's memory: what is in force, and what the call under way will leave if it succeeds.
struct TensorMemory {
  Remainder kept;
  Remainder staged;
  std::uint64_t calls = 0;
  Backlog backlog;

  void commit();
};

/// The memories of all tensors, by name.
class Residuals {
 public:
  /// Throws Error(kInvalidArgument) where the tensor `name` had another size than `count`.
  void require_size(std::string_view name, std::size_t count);

  /// The memory of `name`; zeros at its first call. References stay valid. `count` is the size that
  /// `require_size` has accepted.
  TensorMemory& of(std::string_view name, std::size_t count, bool with_momentum);

  /// Null: none yet.
  const TensorMemory* find(std::string_view name) const;

  void rescale(float factor);
  void clear();
  /// First number of calls of memories made from now on.
  void begin_at(std::uint64_t calls) { first_ = calls; }

 private:
  std::map<std::string, std::size_t, std::less<>> sizes_;  // also of tensors without a memory
  std::map<std::string, TensorMemory, std::less<>> memories_;
  std::uint64_t first_ = 0;
};

}  // namespace elastic::codecs
