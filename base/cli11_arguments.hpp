#pragma once

#include <string>
#include <vector>

namespace elastic {

/// `arguments` as CLI11's `parse` takes them: the last one first. Users of mpirun type -np, but
/// CLI11 has no long options with one dash, so -np becomes --np,
/// and -np=4 --np=4.
inline std::vector<std::string> cli11_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  for (std::string& argument : reversed) {
    if (argument == "-np" || argument.starts_with("-np=")) argument.insert(0, "-");
  }
  return reversed;
}

}  // namespace elastic
