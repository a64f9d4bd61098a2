#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/launcher/supervision.hpp"

namespace elastic::launcher {

/// "worker 3"
std::string worker(int slot);
/// "SIGTERM"
std::string signal_name(int number);
/// "1.5 s"
std::string seconds(Milliseconds time);
/// ": why", or nothing where no reason is known.
std::string because(const std::string& why);

/// The last line of a job that ended with fewer workers than it began with: what became of the
/// missing ones. Empty where it did not.
std::string fewer_workers(int began, int finished, const std::vector<std::string>& missing);

/// Whether the worker left before the job was done, and not on request.
bool left_before_end(const WorkerReport& report);

}  // namespace elastic::launcher
