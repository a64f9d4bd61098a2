#include "benchmarks/library_settings.hpp"

#include "elastic/options.hpp"

namespace elastic::bench {

Result<LibrarySettings> library_settings(const std::string& transport,
                                         const EnvironmentMap& environment) {
  LibrarySettings settings{
      .backend = Options{}.backend, .transport = Options{}.transport, .encrypt = {}};
  if (const auto set = environment.find("ELASTIC_BACKEND"); set != environment.end()) {
    settings.backend = set->second;
  }
  if (environment.contains("ELASTIC_ENCRYPT")) settings.encrypt = wants_encryption(environment);
  const auto set = environment.find("ELASTIC_TRANSPORT");
  if (set != environment.end()) settings.transport = set->second;
  if (transport.empty()) return settings;
  if (set != environment.end() && set->second != transport) {
    return Status(Code::kInvalidArgument, "--transport " + transport +
                                              " contradicts ELASTIC_TRANSPORT=" + set->second +
                                              " in the environment: unset the variable");
  }
  settings.transport = transport;
  return settings;
}

}  // namespace elastic::bench
