#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <errno.h>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <elastic/elastic.hpp>

/// The parts that the examples' command lines share.
namespace examples {

/// A check that an option's value is one of these names.
template <typename T, std::size_t kCount>
CLI::IsMember one_of(const std::array<elastic::Named<T>, kCount>& choices) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.emplace_back(choice.name);
  return CLI::IsMember(names);
}

/// The main function of an example: reads the command line, and tells what ended `train`.
template <typename Train>
int run_program(CLI::App& app, int argc, char** argv, const Train& train) {
  CLI11_PARSE(app, argc, argv);
  try {
    train();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
    return 1;
  }
}

}  // namespace examples
