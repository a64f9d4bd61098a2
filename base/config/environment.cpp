#include "base/config/environment.hpp"

#include <string_view>
#include <unistd.h>

namespace elastic {

EnvironmentMap read_environment() {
  EnvironmentMap environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace elastic
