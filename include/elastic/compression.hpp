#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "elastic/detail/export.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// How gradients travel. docs/compression.md has formulas, sources, and when each one pays.
enum class CompressionKind : std::uint8_t {
  kNone,    ///< as they are
  kF16,     ///< allreduced as f16
  kBF16,    ///< allreduced as bf16
  kInt8,    ///< whole multiples of a scale for each block of elements
  kTwoBit,  ///< threshold, zero or minus threshold
  kTopK,    ///< the elements of greatest magnitude
};

/// A kind and its parameters; those of other kinds are ignored.
struct Compression {
  CompressionKind kind = CompressionKind::kNone;  ///< how gradients travel

  /// kF16: elements are multiplied by it before they are rounded, and sums divided by it, so that
  /// both are within 6e-8 to 65504. A power of two from 2^-24 to 2^24, the same on all workers.
  float scale = 1;
  /// kInt8: elements that share a scale, 1 to 65536.
  std::uint32_t block = 256;
  /// kTwoBit: positive and finite, of the magnitude of larger elements of the gradient.
  float threshold = 0.5F;
  /// kTopK: share of the elements that is sent, above 0 and at most 1; of each tensor at least one.
  double ratio = 0.01;
  /// kTopK: momentum correction, 0 or more and below 1. Where it is not 0 the momentum is applied
  /// before the sum, and the optimizer must have none of its own.
  float momentum = 0;
  /// kTopK: calls in which the ratio shrinks geometrically from 1/4 to `ratio`.
  std::uint64_t warm_up_steps = 0;

  /// \returns whether kind and parameters are equal.
  bool operator==(const Compression&) const = default;
};

/// The forms that `find_compression` takes, for messages.
inline constexpr std::string_view kCompressionForms =
    "one of none, f16, f16:SCALE (a power of two from 2^-24 to 2^24), bf16, int8, int8:BLOCK (1 to "
    "65536), two_bit, two_bit:THRESHOLD (above 0), top_k, top_k:RATIO (above 0, at most 1), "
    "top_k:RATIO:MOMENTUM (0 or more, below 1) or top_k:RATIO:MOMENTUM:WARM_UP_STEPS";

/// Reads a compression from text, such as "int8", "two_bit:0.5" or "top_k:0.01".
/// \returns the compression; nothing if `text` has none of kCompressionForms.
ELASTIC_API std::optional<Compression> find_compression(std::string_view text);

/// Checks the parameters of a compression.
/// \returns the error, with the valid range; empty if there is none.
ELASTIC_API std::string invalid_parameter(const Compression& compression);

/// A tensor of f32 or f64 that an allreduce carries as f16 or bf16, in half or a quarter of the
/// bytes: elements are multiplied by `scale` and rounded, added up in the type that they travel in,
/// and the sums widened and divided by `scale`; for an average then by the number of workers. f64
/// is rounded by way of f32.
///
/// NaN and Inf arrive, NaN as the positive one without payload where something was computed. Values
/// above the range of f16 become Inf.
struct CastTensor {
  TensorView data;  ///< of f32 or f64; summed in place
  /// kF16 or kBF16; or the type of `data`, whichever that is: then it goes as it is.
  DType wire_dtype = DType::kF16;
  /// A power of two from 2^-24 to 2^24; 1 where it goes as it is. The same on all workers.
  float scale = 1;
};

}  // namespace elastic
