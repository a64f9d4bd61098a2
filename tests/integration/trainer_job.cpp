#include "integration/trainer_job.hpp"

#include <cstdlib>
#include <fstream>

#include "tests/slowness.hpp"

namespace elastic::testing {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong = milliseconds(30000) * kHangFactor;

}  // namespace

TrainerJob::TrainerJob(const std::vector<std::string>& options, const std::string& mode,
                       std::vector<std::string> environment) {
  std::vector<std::string> command = options;
  command.insert(command.end(), {ELASTIC_TRAINER, folder().string()});
  if (!mode.empty()) command.push_back(mode);
  job_.start(command, std::move(environment));
}

bool TrainerJob::wait_until_entered(std::size_t workers) {
  return wait_for("entered", workers);
}
bool TrainerJob::wait_until_trained(std::size_t workers) {
  return wait_for("trained", workers);
}
bool TrainerJob::wait_until_ended(std::size_t workers) {
  return wait_for("result", workers);
}

bool TrainerJob::wait_for(const std::string& what, std::size_t workers) {
  return eventually(kLong,
                    [&] {
                      return told(what).size() >= workers ||
                             launcher().wait(milliseconds(2)).has_value();
                    }) &&
         told(what).size() >= workers;
}

pid_t TrainerJob::pid(int slot) const {
  return std::atoi(read_file(folder() / ("pid." + std::to_string(slot))).c_str());
}

std::map<pid_t, std::string> TrainerJob::told(const std::string& what) const {
  std::map<pid_t, std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().filename().string();
    const std::string prefix = what + ".";
    if (!name.starts_with(prefix) || name.find(".new") != std::string::npos) continue;
    std::string content = read_file(entry.path());
    while (!content.empty() && content.back() == '\n') content.pop_back();
    result[std::atoi(name.substr(prefix.size()).c_str())] = content;
  }
  return result;
}

int TrainerJob::finish() {
  std::ofstream(folder() / "finish") << "now" << std::endl;
  return launcher().wait(kLong).value_or(-1);
}

}  // namespace elastic::testing
