#include <cstdio>
#include <exception>
#include <string>
#include <unistd.h>
#include <vector>

#include "config/environment.hpp"
#include "config/options.hpp"
#include "rendezvous/launcher/build_report.hpp"
#include "rendezvous/launcher/control_command.hpp"
#include "rendezvous/launcher/launch_options.hpp"
#include "rendezvous/launcher/launcher.hpp"
#include "rendezvous/launcher/program_path.hpp"

namespace {

using namespace elastic;
using namespace elastic::launcher;

constexpr int kUsageError = 2;

int usage_error(const Status& status) {
  std::fprintf(stderr, "elasticrun: %s\n", status.message().c_str());
  return kUsageError;
}

int launch(LaunchOptions options, const EnvironmentMap& environment) {
  // Every worker would end with the same error.
  if (const auto valid = resolve({}, environment); !valid.ok()) return usage_error(valid.status());
  options.encrypt = options.encrypt || wants_encryption(environment);
  const auto search_path = environment.find("PATH");
  auto program = find_program(options.command.front(),
                              search_path == environment.end() ? "" : search_path->second);
  if (!program.ok()) return usage_error(program.status());
  return Launcher(options, program.value(), environment).run();
}

int run(const std::vector<std::string>& arguments) {
  const EnvironmentMap environment = read_environment();
  if (!arguments.empty() && arguments.front() == "ctl") {
    return run_control_command({arguments.begin() + 1, arguments.end()}, environment);
  }
  auto request = parse_launch_options(arguments);
  if (!request.ok()) return usage_error(request.status());
  if (const auto* text = std::get_if<PrintAndExit>(&request.value())) {
    std::fputs(text->text.c_str(), stdout);
    return 0;
  }
  if (std::holds_alternative<CheckBuild>(request.value())) {
    std::fputs(build_report(environment).c_str(), stdout);
    return 0;
  }
  return launch(std::get<LaunchOptions>(std::move(request).value()), environment);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elasticrun: %s\n", error.what());
    return 1;
  }
}
