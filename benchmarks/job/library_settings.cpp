#include "benchmarks/job/library_settings.hpp"

#include <algorithm>

#include "benchmarks/peers/peer_names.hpp"
#include "elastic/options.hpp"

namespace elastic::bench {

namespace {

Status contradiction(const std::string& option, const EnvironmentMap::value_type& variable) {
  return Status(Code::kInvalidArgument, option + " contradicts " + variable.first + "=" +
                                            variable.second +
                                            " in the environment: unset the variable");
}

}  // namespace

Result<LibrarySettings> library_settings(const std::string& transport,
                                         const EnvironmentMap& environment) {
  LibrarySettings settings{.backend = Options{}.backend,
                           .backends = {},
                           .jobs = {},
                           .transport = std::string(name_in(kTransports, Options{}.transport)),
                           .encrypt = {}};
  if (const auto set = environment.find("ELASTIC_BACKEND"); set != environment.end()) {
    settings.backend = set->second;
  }
  settings.backends = settings.jobs = {settings.backend};
  if (environment.contains("ELASTIC_ENCRYPT")) settings.encrypt = wants_encryption(environment);
  const auto set = environment.find("ELASTIC_TRANSPORT");
  if (set != environment.end()) settings.transport = set->second;
  if (transport.empty()) return settings;
  if (set != environment.end() && set->second != transport) {
    return contradiction("--transport " + transport, *set);
  }
  settings.transport = transport;
  return settings;
}

Result<LibrarySettings> library_settings(const RankOptions& options,
                                         const EnvironmentMap& environment) {
  auto settings = library_settings(options.transport, environment);
  if (!settings.ok()) return settings;
  if (!options.rendezvous.empty()) {
    const auto set = environment.find("ELASTIC_RENDEZVOUS");
    if (set != environment.end()) return contradiction("--rendezvous", *set);
  }
  if (options.backends.empty()) return settings;
  settings.value().backends = options.backends;
  const auto backends = without_peers(options.backends);
  if (backends.empty()) return settings;
  settings.value().jobs = backends;
  if (const auto set = environment.find("ELASTIC_BACKEND"); set != environment.end()) {
    const bool same = std::all_of(backends.begin(), backends.end(),
                                  [&](const std::string& one) { return one == set->second; });
    if (!same) return contradiction("--backend", *set);
  }
  if (backends.size() > 1 && options.rendezvous.empty()) {
    for (const char* name : {"ELASTIC_RENDEZVOUS", "ELASTIC_JOB"}) {
      const auto set = environment.find(name);
      if (set == environment.end()) continue;
      return Status(Code::kInvalidArgument,
                    "--backend with several backends needs a job for each, but " + set->first +
                        "=" + set->second +
                        " names one: start with mpirun on one machine and without the variable, or "
                        "name the servers with --rendezvous");
    }
  }
  return settings;
}

}  // namespace elastic::bench
