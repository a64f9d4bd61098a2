#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// Runs a program in a process group of its own, with its output in a file, and waits for its end.
/// kInternal with the last lines of the output when it does not exit with 0, kTimeout likewise when
/// it has not ended at the deadline and is killed. It also dies with this process.
Status run_child(const std::vector<std::string>& command, const std::filesystem::path& output,
                 std::chrono::milliseconds deadline);

/// Becomes another program; returns only on failure.
Status become(const std::vector<std::string>& command);

}  // namespace elastic::bench
