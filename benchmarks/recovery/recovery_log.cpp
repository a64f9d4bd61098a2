#include "benchmarks/recovery/recovery_log.hpp"

#include <fstream>
#include <string>

namespace elastic::bench {

namespace {

Status unreadable(const std::filesystem::path& file, const std::string& why) {
  return Status(Code::kInternal, file.string() + " " + why);
}

}  // namespace

std::filesystem::path calls_file(const std::filesystem::path& folder, int rank) {
  return folder / ("calls." + std::to_string(rank));
}

std::filesystem::path change_file(const std::filesystem::path& folder, int rank) {
  return folder / ("change." + std::to_string(rank));
}

std::filesystem::path fault_file(const std::filesystem::path& folder) {
  return folder / "fault";
}

Status write_calls(const std::filesystem::path& file, const std::vector<CallRecord>& calls) {
  std::ofstream output(file);
  for (const CallRecord& call : calls) {
    output << call.call << ' ' << call.start_ns << ' ' << call.end_ns << ' ' << call.counted
           << '\n';
  }
  output.flush();
  if (!output) return unreadable(file, "cannot be written");
  return {};
}

Result<std::vector<CallRecord>> read_calls(const std::filesystem::path& file) {
  std::ifstream input(file);
  if (!input) return unreadable(file, "is missing: the worker did not come to its end");
  std::vector<CallRecord> calls;
  for (CallRecord call; input >> call.call >> call.start_ns >> call.end_ns >> call.counted;) {
    calls.push_back(call);
  }
  if (!input.eof() || calls.empty()) return unreadable(file, "is damaged");
  return calls;
}

Status write_change(const std::filesystem::path& file, const ChangeRecord& change) {
  std::ofstream output(file);
  output << change.generation << ' ' << change.noticed_ns << ' ' << change.reported_ns << ' '
         << change.decided_ns << ' ' << change.installed_ns << '\n';
  output.flush();
  if (!output) return unreadable(file, "cannot be written");
  return {};
}

Result<ChangeRecord> read_change(const std::filesystem::path& file) {
  std::ifstream input(file);
  ChangeRecord change;
  if (!(input >> change.generation >> change.noticed_ns >> change.reported_ns >>
        change.decided_ns >> change.installed_ns)) {
    return unreadable(file, "is missing or damaged");
  }
  return change;
}

Result<std::int64_t> read_fault(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::int64_t time = 0;
  if (!(input >> time)) return unreadable(file, "is missing or damaged: no fault has struck");
  return time;
}

}  // namespace elastic::bench
