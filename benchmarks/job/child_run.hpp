#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// Runs a program in a process group of its own, with its output in a file, and waits for its end.
/// If it does not exit with 0: kInternal; if the deadline passes and it is killed: kTimeout. Both
/// errors have the last lines of the output. The program also dies with this process.
Status run_child(const std::vector<std::string>& command, const std::filesystem::path& output,
                 std::chrono::milliseconds deadline);

/// Replaces this process by another program (execv); returns only on failure.
Status become(const std::vector<std::string>& command);

}  // namespace elastic::bench
