#include "integration/digits_job.hpp"

#include <cstdlib>
#include <signal.h>
#include <sstream>
#include <stdexcept>

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60000};

}  // namespace

DigitsJob::DigitsJob(const std::vector<std::string>& options,
                     const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment) {
  std::vector<std::string> command = options;
  const std::string folder = job_.folder().string();
  command.insert(command.end(), {TRAIN_DIGITS, "--report", folder, "--trace", folder});
  command.insert(command.end(), arguments.begin(), arguments.end());
  job_.start(command, environment);
}

bool DigitsJob::wait_until_stepped(std::size_t workers, std::size_t steps) {
  return eventually(kLong,
                    [&] {
                      return stepped(steps).size() >= workers ||
                             job_.launcher().wait(milliseconds(5));
                    }) &&
         stepped(steps).size() >= workers;
}

std::vector<pid_t> DigitsJob::stepped(std::size_t steps) const {
  std::vector<pid_t> workers;
  for (const auto& [pid, written] : files("trace-")) {
    if (written.size() >= steps && !dead_.contains(pid)) workers.push_back(pid);
  }
  return workers;
}

void DigitsJob::kill_one() {
  const std::vector<pid_t> candidates = stepped(1);
  if (candidates.empty()) throw std::logic_error("no worker to kill");
  dead_.insert(candidates.front());
  ::kill(candidates.front(), SIGKILL);
}

bool DigitsJob::wait_until_self_destructed() {
  return eventually(kLong,
                    [&] {
                      for (const auto& [pid, written] : files("kill-")) {
                        if (!written.empty()) dead_.insert(pid);
                      }
                      return !dead_.empty() || job_.launcher().wait(milliseconds(5));
                    }) &&
         !dead_.empty();
}

int DigitsJob::finish() {
  return job_.launcher().wait(kLong).value_or(-1);
}

std::map<pid_t, std::vector<std::string>> DigitsJob::files(const std::string& prefix) const {
  std::map<pid_t, std::vector<std::string>> found;
  for (const auto& entry : std::filesystem::directory_iterator(job_.folder())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    auto& written = found[std::atoi(name.substr(prefix.size()).c_str())];
    std::istringstream content(read_file(entry.path()));
    for (std::string line; std::getline(content, line);) {
      if (!content.eof()) written.push_back(line);  // a last one without its end is not whole yet
    }
  }
  return found;
}

std::vector<nlohmann::json> DigitsJob::lines(const std::string& prefix) const {
  std::vector<nlohmann::json> parsed;
  for (const auto& [pid, written] : files(prefix)) {
    for (const std::string& line : written) parsed.push_back(nlohmann::json::parse(line));
  }
  return parsed;
}

}  // namespace elastic::testing
