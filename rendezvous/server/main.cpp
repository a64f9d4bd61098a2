#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "rendezvous/server/program.hpp"
#include "rendezvous/server/program_options.hpp"

int main(int argc, char** argv) try {
  using namespace elastic;
  rendezvous::ParsedProgram parsed = rendezvous::parse_program(argc, argv);
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    return *parsed.exit_code;
  }
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file at its limit (ulimit -f) is as a full disk: write(2) fails
  log::set_level(*find_named(kLogLevels, parsed.options.log_level));
  log::set_name("rendezvous");
  const Status done = rendezvous::run_program(std::move(parsed.options));
  if (done.ok()) return 0;
  std::fprintf(stderr, "elastic-rendezvous: %s\n", done.message().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic-rendezvous: %s\n", error.what());
  return 1;
}
