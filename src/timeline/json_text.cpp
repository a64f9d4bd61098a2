#include "timeline/json_text.hpp"

#include <nlohmann/json.hpp>

namespace elastic::timeline {

std::string json_text(std::string_view text) {
  constexpr bool kAscii = true;
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', kAscii, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace elastic::timeline
