#include "rendezvous/launcher/worker_environment.hpp"

#include <algorithm>

#include "elastic/options.hpp"
#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::launcher {

namespace {

constexpr int kMostSlots = 100000;  ///< of one launcher

}  // namespace

std::vector<std::string> worker_environment(std::map<std::string, std::string> inherited,
                                            const LaunchOptions& options, const JobPlace& job,
                                            int slot, int attempt, int secret_fd) {
  auto& environment = inherited;
  // Left over from an outer launcher, they would contradict ours.
  environment.erase("ELASTIC_SECRET_FILE");
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(slot);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(options.np);
  if (!options.join.empty() || options.job_np != options.np) {
    environment.erase("RANK");
    environment.erase("WORLD_SIZE");
  }
  environment["ELASTIC_RENDEZVOUS"] = job.address;
  environment["ELASTIC_JOB"] = job.name;
  environment["ELASTIC_SECRET_FD"] = std::to_string(secret_fd);
  // Ranks of the first view follow it, so those of a launcher are next to each other.
  environment["ELASTIC_SLOT"] = std::to_string(job.launcher * kMostSlots + slot);
  environment["ELASTIC_LABEL"] = rendezvous::slot_label({job.launcher, slot});
  environment["ELASTIC_RESTART"] = std::to_string(attempt);
  // By default the threads of OpenMP, and so those of PyTorch, NumPy and BLAS, are as many as the
  // processors, in each worker.
  if (options.slots > 1) {
    const int share = std::max(1, job.processors / options.slots);
    environment.try_emplace("OMP_NUM_THREADS", std::to_string(share));
  }

  const std::string& reached_by = options.join.empty() ? options.bind : options.join;
  if (!reached_by.starts_with("127.") && !reached_by.starts_with("[::1]") && reached_by != "::1" &&
      !reached_by.starts_with("localhost")) {
    environment.try_emplace("ELASTIC_BIND", "0.0.0.0");  // workers of other hosts connect to it
  }

  // Otherwise what the program itself asks for stands: one that encrypts must not go without.
  if (options.encrypt) environment["ELASTIC_ENCRYPT"] = "1";

  if (const Milliseconds longest = options.start_timeout + LaunchOptions::kStartMargin;
      longest > Options().init_timeout) {
    environment.try_emplace("ELASTIC_INIT_TIMEOUT_MS", std::to_string(longest.count()));
  }

  if (options.stall_timeout) {
    environment["ELASTIC_STALL_TIMEOUT_MS"] = std::to_string(options.stall_timeout->count());
  }

  return variables(environment);
}

std::vector<std::string> variables(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> made;
  made.reserve(environment.size());
  for (const auto& [name, value] : environment) made.push_back(name + "=" + value);
  return made;
}

}  // namespace elastic::launcher
