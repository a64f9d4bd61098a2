#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace elastic::fault {

/// A worker's arguments from a test, as "name=value".
struct Arguments {
  std::string kind = "allreduce";  ///< of the call in each step; "mixed" for all in turn; "train"
  std::uint64_t steps = 0;         ///< 0: until the file `until` exists
  std::string until;               ///< path
  std::size_t elements = 1000;     ///< of the tensor in each step
  std::uint64_t pause_us = 0;      ///< between steps, as if something was computed
  std::string die;                 ///< see Death
  std::size_t state_bytes = 1000;  ///< "train" only
  bool die_loading = false;        ///< "train" only: a joiner dies once it has the state

  static Arguments parse(int count, char** values);
};

inline Arguments Arguments::parse(int count, char** values) {
  Arguments result;
  for (int i = 1; i < count; ++i) {
    const std::string argument = values[i];
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "kind") {
      result.kind = value;
    } else if (name == "steps") {
      result.steps = std::stoull(value);
    } else if (name == "until") {
      result.until = value;
    } else if (name == "elements") {
      result.elements = std::stoull(value);
    } else if (name == "pause_us") {
      result.pause_us = std::stoull(value);
    } else if (name == "die") {
      result.die = value;
    } else if (name == "state_bytes") {
      result.state_bytes = std::stoull(value);
    } else if (name == "die_loading") {
      result.die_loading = true;
    } else {
      throw std::invalid_argument("unknown argument " + argument);
    }
  }
  return result;
}

}  // namespace elastic::fault
