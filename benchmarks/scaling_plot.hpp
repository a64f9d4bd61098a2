#pragma once

#include <array>
#include <string>

#include <nlohmann/json.hpp>

namespace elastic::bench {

/// What others have reached.
struct ScalingReference {
  int ranks;
  double efficiency;
  const char* source;
};
inline constexpr std::array<ScalingReference, 2> kScalingReferences{
    {{8, 0.96, "MXNet, fine-tuning study"}, {8, 0.94, "MXNet, fine-tuning study"}}};

/// An SVG document: speed-up over ranks, beside the ideal and the references. `rows` are those of a
/// scaling report.
std::string scaling_plot(const nlohmann::ordered_json& rows);

}  // namespace elastic::bench
