#include "rendezvous/launcher/worker_environment.hpp"

#include <charconv>
#include <system_error>

#include "elastic/options.hpp"

namespace elastic::launcher {

std::vector<std::string> worker_environment(std::map<std::string, std::string> inherited,
                                            const LaunchOptions& options,
                                            const std::string& address, int slot, int attempt,
                                            int secret_fd) {
  auto& environment = inherited;
  // Left over from an outer launcher, they would contradict ours.
  environment.erase("ELASTIC_SECRET_FILE");
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(slot);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(options.np);
  environment["ELASTIC_RENDEZVOUS"] = address;
  environment["ELASTIC_JOB"] = options.job;
  environment["ELASTIC_SECRET_FD"] = std::to_string(secret_fd);
  environment["ELASTIC_SLOT"] = std::to_string(slot);
  environment["ELASTIC_LABEL"] = slot_label(slot);
  environment["ELASTIC_RESTART"] = std::to_string(attempt);

  // Otherwise what the program itself asks for stands: one that encrypts must not go without.
  if (options.encrypt) environment["ELASTIC_ENCRYPT"] = "1";

  if (const Milliseconds longest = options.start_timeout + LaunchOptions::kStartMargin;
      longest > Options().init_timeout) {
    environment.try_emplace("ELASTIC_INIT_TIMEOUT_MS", std::to_string(longest.count()));
  }

  if (options.stall_timeout) {
    environment["ELASTIC_STALL_TIMEOUT_MS"] = std::to_string(options.stall_timeout->count());
  }

  std::vector<std::string> made;
  made.reserve(environment.size());
  for (const auto& [name, value] : environment) made.push_back(name + "=" + value);
  return made;
}

std::optional<int> slot_of(std::string_view label) {
  constexpr std::string_view kPrefix = "slot-";
  if (!label.starts_with(kPrefix)) return std::nullopt;
  label.remove_prefix(kPrefix.size());
  int slot = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), slot);
  if (error != std::errc() || end != label.data() + label.size()) return std::nullopt;
  return slot;
}

}  // namespace elastic::launcher
