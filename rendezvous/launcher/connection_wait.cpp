#include "rendezvous/launcher/connection_wait.hpp"

#include <thread>

namespace elastic::launcher {

namespace {

/// Between looks. Hosts that share a folder do not tell each other of changes.
constexpr Milliseconds kPause{50};

}  // namespace

Result<rendezvous::JobContact> await_connection_file(const std::string& path,
                                                     Milliseconds longest) {
  const TimePoint deadline = Clock::now() + longest;
  while (true) {
    auto contact = rendezvous::read_connection_file(path);
    if (contact.ok() || contact.status().code() != Code::kUnavailable) return contact;
    if (Clock::now() >= deadline) {
      return Status(Code::kUnavailable,
                    contact.status().message() + ": the job's server has not written it within " +
                        std::to_string(longest.count()) +
                        " ms (--start-timeout-ms); does that run, and do its host and this one "
                        "share the folder? Under srun, --slurm-folder names another");
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace elastic::launcher
