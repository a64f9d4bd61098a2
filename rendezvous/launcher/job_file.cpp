#include "rendezvous/launcher/job_file.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <optional>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "rendezvous/launcher/private_folder.hpp"
#include "rendezvous/protocol/secret_json.hpp"

namespace elastic::launcher {

namespace {

std::optional<JobRecord> read_record(const std::filesystem::path& path) {
  const auto read = rendezvous::read_secret_json(path.string());
  if (!read.ok()) return std::nullopt;
  const nlohmann::json& fields = read.value().fields;
  try {
    return JobRecord{fields.at("job").get<std::string>(),
                     fields.at("address").get<std::string>(),
                     read.value().secret,
                     fields.value("encrypt", false),  // older releases do not have it
                     {fields.at("pid").get<pid_t>(), fields.at("start_time").get<std::uint64_t>()}};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string jobs_folder(const std::string& folder) {
  std::error_code error;
  const std::string name = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  std::string number;  // of "pid:[4026531836]"
  std::copy_if(name.begin(), name.end(), std::back_inserter(number),
               [](unsigned char character) { return std::isdigit(character) != 0; });
  return folder + "/jobs" + (number.empty() ? "" : "-" + number);
}

std::string job_record_path(const std::string& folder, const std::string& job) {
  return jobs_folder(folder) + "/" + job + ".json";
}

Status write_job_record(const std::string& folder, const JobRecord& record) {
  if (Status status = make_private_folder(jobs_folder(folder)); !status.ok()) return status;
  if (const auto other = find_job_record(folder, record.job)) {
    return Status(Code::kRefused, "job " + record.job + " is running already (process " +
                                      std::to_string(other->owner.pid) + ")");
  }
  const nlohmann::json fields = {{"job", record.job},
                                 {"address", record.address},
                                 {"encrypt", record.encrypt},
                                 {"pid", record.owner.pid},
                                 {"start_time", record.owner.start_time}};
  return rendezvous::write_secret_json(job_record_path(folder, record.job),
                                       {fields, record.secret});
}

std::optional<JobRecord> find_job_record(const std::string& folder, const std::string& job) {
  auto record = read_record(job_record_path(folder, job));
  if (record && !record->owner.alive()) record.reset();
  return record;
}

void remove_job_record(const std::string& folder, const std::string& job) {
  ::unlink(job_record_path(folder, job).c_str());
}

Result<JobFile> JobFile::create(const std::string& folder, const JobRecord& record) {
  if (Status status = write_job_record(folder, record); !status.ok()) return status;
  return JobFile(job_record_path(folder, record.job));
}

JobFile::~JobFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::vector<JobRecord> running_jobs(const std::string& folder) {
  std::vector<JobRecord> running;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(jobs_folder(folder), ignored)) {
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
