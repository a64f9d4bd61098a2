#include "rendezvous/launcher/job_file.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "rendezvous/launcher/private_folder.hpp"

namespace elastic::launcher {

namespace {

std::string path_of(const std::string& folder, const std::string& job) {
  return folder + "/jobs/" + job + ".json";
}

std::optional<Secret> from_hex(const std::string& text) {
  Secret secret{};
  if (text.size() != 2 * secret.size()) return std::nullopt;
  for (std::size_t byte = 0; byte < secret.size(); ++byte) {
    const char* begin = text.data() + 2 * byte;
    unsigned value = 0;
    if (std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) return std::nullopt;
    secret[byte] = static_cast<std::byte>(value);
  }
  return secret;
}

std::optional<JobRecord> read_record(const std::filesystem::path& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    const auto secret = from_hex(json.at("secret").get<std::string>());
    if (!secret) return std::nullopt;
    return JobRecord{json.at("job").get<std::string>(),
                     json.at("address").get<std::string>(),
                     *secret,
                     json.value("encrypt", false),  // older releases do not have it
                     {json.at("pid").get<pid_t>(), json.at("start_time").get<std::uint64_t>()}};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Status write_job_record(const std::string& folder, const JobRecord& record) {
  if (Status status = make_private_folder(folder + "/jobs"); !status.ok()) return status;
  if (const auto other = find_job_record(folder, record.job)) {
    return Status(Code::kRefused, "job " + record.job + " is running already (process " +
                                      std::to_string(other->owner.pid) + ")");
  }
  const nlohmann::json json = {{"job", record.job},
                               {"address", record.address},
                               {"secret", to_hex(record.secret)},
                               {"encrypt", record.encrypt},
                               {"pid", record.owner.pid},
                               {"start_time", record.owner.start_time}};
  return write_private_file(path_of(folder, record.job), json.dump() + "\n");
}

std::optional<JobRecord> find_job_record(const std::string& folder, const std::string& job) {
  auto record = read_record(path_of(folder, job));
  if (record && !record->owner.alive()) record.reset();
  return record;
}

void remove_job_record(const std::string& folder, const std::string& job) {
  ::unlink(path_of(folder, job).c_str());
}

Result<JobFile> JobFile::create(const std::string& folder, const JobRecord& record) {
  if (Status status = write_job_record(folder, record); !status.ok()) return status;
  return JobFile(path_of(folder, record.job));
}

JobFile::~JobFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::vector<JobRecord> running_jobs(const std::string& folder) {
  std::vector<JobRecord> running;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/jobs", ignored)) {
    if (entry.path().extension() != ".json") continue;
    const auto record = read_record(entry.path());
    if (record && record->owner.alive()) {
      running.push_back(*record);
    } else {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
  std::sort(running.begin(), running.end(),
            [](const JobRecord& a, const JobRecord& b) { return a.job < b.job; });
  return running;
}

}  // namespace elastic::launcher
