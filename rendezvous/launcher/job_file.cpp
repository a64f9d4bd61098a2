#include "rendezvous/launcher/job_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "rendezvous/launcher/private_folder.hpp"

namespace elastic::launcher {

namespace {

std::string path_of(const std::string& folder, const std::string& job) {
  return folder + "/jobs/" + job + ".json";
}

std::optional<JobRecord> read_record(const std::filesystem::path& path) {
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    const SecretText text(std::move(json.at("secret").get_ref<std::string&>()));
    const Result<Secret> secret = parse_secret(text.text(), path.string());
    if (!secret.ok()) return std::nullopt;
    return JobRecord{json.at("job").get<std::string>(),
                     json.at("address").get<std::string>(),
                     secret.value(),
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
  nlohmann::json json = {{"job", record.job},
                         {"address", record.address},
                         {"secret", to_hex(record.secret)},
                         {"encrypt", record.encrypt},
                         {"pid", record.owner.pid},
                         {"start_time", record.owner.start_time}};
  const SecretText line(json.dump());
  const SecretText in_json(std::move(json["secret"].get_ref<std::string&>()));
  return write_private_file(path_of(folder, record.job), line.text());
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
