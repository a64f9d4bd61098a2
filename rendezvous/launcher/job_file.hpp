#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/launcher/process_identity.hpp"

namespace elastic::launcher {

/// How `elasticrun ctl` reaches a job that runs on this machine.
struct JobRecord {
  std::string job;
  std::string address;
  Secret secret{};
  bool encrypt = false;
  ProcessIdentity owner;  ///< the process that the server lives in
};

/// Where the records are, within a user's folder: containers that share the folder, but not the
/// numbers of processes, have one each, since they cannot tell whether an owner is alive.
std::string jobs_folder(const std::string& folder);

/// The file of a job's record.
std::string job_record_path(const std::string& folder, const std::string& job);

/// Writes JOB.json to that folder, which counts as long as its owner is alive. kRefused when a job
/// of that name is running.
Status write_job_record(const std::string& folder, const JobRecord& record);

/// The job of that name, if its owner is alive.
std::optional<JobRecord> find_job_record(const std::string& folder, const std::string& job);

void remove_job_record(const std::string& folder, const std::string& job);

/// A job record for as long as this object lives.
class JobFile {
 public:
  static Result<JobFile> create(const std::string& folder, const JobRecord& record);
  JobFile(JobFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  JobFile& operator=(JobFile&&) = delete;
  ~JobFile();

 private:
  explicit JobFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The jobs in `folder` whose owners are alive; files of others are removed.
std::vector<JobRecord> running_jobs(const std::string& folder);

}  // namespace elastic::launcher
