#include "rendezvous/launcher/process_identity.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace elastic::launcher {

namespace {

/// The kernel's fields of a process from the third on, its state; empty if it is not there.
std::istringstream fields_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The second field is the program's name in parentheses, which may itself contain anything.
  const auto after_name = text.rfind(')');
  return std::istringstream(after_name == std::string::npos ? "" : text.substr(after_name + 1));
}

}  // namespace

bool is_stopped(pid_t pid) {
  std::string state;
  fields_of(pid) >> state;
  return state == "T" || state == "t";
}

std::optional<std::uint64_t> start_time_of(pid_t pid) {
  std::istringstream fields = fields_of(pid);
  std::string state;
  if (!(fields >> state) || state == "Z" || state == "X") return std::nullopt;
  constexpr int kFieldsBetweenStateAndStartTime = 18;
  std::string skipped;
  for (int field = 0; field < kFieldsBetweenStateAndStartTime; ++field) fields >> skipped;
  std::uint64_t start_time = 0;
  if (!(fields >> start_time)) return std::nullopt;
  return start_time;
}

ProcessIdentity ProcessIdentity::of_this_process() {
  const pid_t pid = ::getpid();
  return {pid, start_time_of(pid).value_or(0)};
}

}  // namespace elastic::launcher
