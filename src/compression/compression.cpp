#include "elastic/compression.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace elastic {
namespace {

constexpr std::array<std::pair<std::string_view, CompressionKind>, 6> kKinds{{
    {"none", CompressionKind::kNone},
    {"f16", CompressionKind::kF16},
    {"bf16", CompressionKind::kBF16},
    {"int8", CompressionKind::kInt8},
    {"two_bit", CompressionKind::kTwoBit},
    {"top_k", CompressionKind::kTopK},
}};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

/// Reads a kind's parameters in their order; each of them may be left out with all that follow.
class Parameters {
 public:
  explicit Parameters(std::vector<std::string_view> texts) : texts_(std::move(texts)) {}

  template <typename T>
  void take(T& value) {
    if (next_ == texts_.size()) return;
    const std::string_view text = texts_[next_++];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) valid_ = false;
  }
  bool all_taken() const { return valid_ && next_ == texts_.size(); }

 private:
  std::vector<std::string_view> texts_;
  std::size_t next_ = 1;  // the first is the kind
  bool valid_ = true;
};

void take(Parameters& parameters, Compression& compression) {
  switch (compression.kind) {
    case CompressionKind::kNone:
    case CompressionKind::kBF16:
      return;
    case CompressionKind::kF16:
      return parameters.take(compression.scale);
    case CompressionKind::kInt8:
      return parameters.take(compression.block);
    case CompressionKind::kTwoBit:
      return parameters.take(compression.threshold);
    case CompressionKind::kTopK:
      parameters.take(compression.ratio);
      parameters.take(compression.momentum);
      parameters.take(compression.warm_up_steps);
  }
}

template <typename T>
std::string wrong(const char* name, T value, const char* range) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.begin(), text.end(), value);
  return std::string(name) + " is " + std::string(text.begin(), end) + "; give " + range;
}

bool is_scale(float scale) {
  int exponent = 0;
  return scale >= 0x1p-24F && scale <= 0x1p24F && std::frexp(scale, &exponent) == 0.5F;
}

std::string invalid_top_k(const Compression& compression) {
  if (!(compression.ratio > 0 && compression.ratio <= 1)) {
    return wrong("ratio", compression.ratio, "a share above 0 and at most 1");
  }
  if (!(compression.momentum >= 0 && compression.momentum < 1)) {
    return wrong("momentum", compression.momentum, "0 or more, below 1");
  }
  return {};
}

}  // namespace

std::optional<Compression> find_compression(std::string_view text) {
  const std::vector<std::string_view> parts = split(text);
  for (const auto& [name, kind] : kKinds) {
    if (name != parts.front()) continue;
    Compression compression{.kind = kind};
    Parameters parameters(parts);
    take(parameters, compression);
    if (!parameters.all_taken() || !invalid_parameter(compression).empty()) return std::nullopt;
    return compression;
  }
  return std::nullopt;
}

std::string invalid_parameter(const Compression& compression) {
  switch (compression.kind) {
    case CompressionKind::kNone:
    case CompressionKind::kBF16:
      return {};
    case CompressionKind::kF16:
      if (is_scale(compression.scale)) return {};
      return wrong("scale", compression.scale, "a power of two from 2^-24 to 2^24");
    case CompressionKind::kInt8:
      if (compression.block >= 1 && compression.block <= 65536) return {};
      return wrong("block", compression.block, "1 to 65536 elements");
    case CompressionKind::kTwoBit:
      if (std::isfinite(compression.threshold) && compression.threshold > 0) return {};
      return wrong("threshold", compression.threshold, "a finite number above 0");
    case CompressionKind::kTopK:
      return invalid_top_k(compression);
  }
  return "kind is none of CompressionKind";
}

}  // namespace elastic
