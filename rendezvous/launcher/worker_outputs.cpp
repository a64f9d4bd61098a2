#include "rendezvous/launcher/worker_outputs.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace elastic::launcher {

Status WorkerOutputs::prepare() const {
  if (place_.folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(place_.folder, error);
  if (!error) return {};
  const bool is_file = error == std::errc::not_a_directory || error == std::errc::file_exists;
  return Status(is_file ? Code::kInvalidArgument : Code::kUnavailable,
                "--output-dir " + place_.folder + ": " + error.message());
}

Result<WorkerOutput*> WorkerOutputs::of(int slot, const std::string& label) {
  auto& output = outputs_[slot];
  if (!output) {
    std::string prefix;
    if (place_.prefix) {
      const std::string host = place_.host.empty() ? "" : place_.host + ":";
      prefix = "[" + host + std::to_string(slot) + "] ";
    }
    auto made =
        std::make_unique<WorkerOutput>(std::move(prefix), console_.output(), console_.errors());
    if (!place_.folder.empty()) {
      const Status status = WorkerOutput::open_files(label.substr(std::string_view("slot-").size()),
                                                     place_.folder, *made);
      if (!status.ok()) return status;
    }
    output = std::move(made);
  }
  output->forget_lines();
  return output.get();
}

void WorkerOutputs::show_last_lines(int slot, const std::string& how) {
  const auto output = outputs_.find(slot);
  const std::string who = "worker " + std::to_string(slot) + " " + how;
  if (output == outputs_.end() || output->second->last_lines().empty()) {
    return console_.say(who + " and wrote nothing");
  }
  console_.say(who + "; its last lines:");
  std::string lines;
  for (const auto& line : output->second->last_lines()) lines += "    | " + line + "\n";
  console_.show(std::move(lines));
}

}  // namespace elastic::launcher
