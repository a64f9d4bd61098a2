#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

namespace elastic::launcher {

inline const std::array<std::string, 8> kControlCommands = {"status", "top",    "add",  "remove",
                                                            "drain",  "pardon", "dump", "stop"};

/// `elasticrun ctl …`: asks a running job's server something and prints the answer. Returns the
/// exit code: 0, 1 where the job refused or cannot be reached, 2 for wrong usage.
int run_control_command(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment);

}  // namespace elastic::launcher
