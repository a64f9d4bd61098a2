#pragma once

#include <array>
#include <string>

#include <nlohmann/json.hpp>

namespace elastic::bench {

/// A published result for comparison.
struct ScalingReference {
  int ranks;
  double efficiency;
  const char* source;
};
inline constexpr std::array<ScalingReference, 2> kScalingReferences{
    {{8, 0.96, "MXNet, fine-tuning study"}, {8, 0.94, "MXNet, fine-tuning study"}}};

/// An SVG document of the speed-up over ranks, with the ideal line and the references. `rows`: the
/// rows of a scaling report.
std::string scaling_plot(const nlohmann::ordered_json& rows);

}  // namespace elastic::bench
