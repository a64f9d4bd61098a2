#include "rendezvous/launcher/job_file.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/unique_fd.hpp"
#include "rendezvous/launcher/private_folder.hpp"

namespace elastic::launcher {

namespace {

std::string path_of(const std::string& folder, const std::string& job) {
  return jobs_folder(folder) + "/" + job + ".json";
}

constexpr std::string_view kSecretField = R"("secret":")";

/// The file's text, in which the secret is; not by way of a stream, whose buffer would keep it.
bool read_text(const std::filesystem::path& path, SecretText& text) {
  constexpr std::size_t kMost = 65536;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  text.text().resize(kMost);
  const ssize_t got = ::pread(file.get(), text.text().data(), kMost, 0);
  text.text().resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0;
}

/// Takes the secret out of a record's text, and leaves the rest, which is JSON without it: what a
/// parser makes of a text is not cleansed.
Result<Secret> take_secret(std::string& record, const std::string& source) {
  const std::size_t field = record.find(kSecretField);
  const std::size_t begin = field + kSecretField.size();
  const std::size_t end = field == std::string::npos ? field : record.find('"', begin);
  if (end == std::string::npos) {
    return Status(Code::kInvalidArgument, source + ": has no secret in it");
  }
  Result<Secret> secret = parse_secret(std::string_view(record).substr(begin, end - begin), source);
  std::fill(record.begin() + static_cast<std::ptrdiff_t>(begin),
            record.begin() + static_cast<std::ptrdiff_t>(end), '-');
  return secret;
}

std::optional<JobRecord> read_record(const std::filesystem::path& path) {
  SecretText text{std::string()};
  if (!read_text(path, text)) return std::nullopt;
  const Result<Secret> secret = take_secret(text.text(), path.string());
  if (!secret.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(text.text(), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
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

std::string jobs_folder(const std::string& folder) {
  std::error_code error;
  const std::string name = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  std::string number;  // of "pid:[4026531836]"
  std::copy_if(name.begin(), name.end(), std::back_inserter(number),
               [](unsigned char character) { return std::isdigit(character) != 0; });
  return folder + "/jobs" + (number.empty() ? "" : "-" + number);
}

Status write_job_record(const std::string& folder, const JobRecord& record) {
  if (Status status = make_private_folder(jobs_folder(folder)); !status.ok()) return status;
  if (const auto other = find_job_record(folder, record.job)) {
    return Status(Code::kRefused, "job " + record.job + " is running already (process " +
                                      std::to_string(other->owner.pid) + ")");
  }
  const nlohmann::json json = {{"job", record.job},
                               {"address", record.address},
                               {"encrypt", record.encrypt},
                               {"pid", record.owner.pid},
                               {"start_time", record.owner.start_time}};
  const SecretText secret(to_hex(record.secret));
  SecretText line(json.dump());
  // The object's last field. A string that moves to grow would leave a copy of the secret behind.
  std::string& text = line.text();
  text.reserve(text.size() + kSecretField.size() + secret.text().size() + 3);
  text.pop_back();
  text.append(",").append(kSecretField).append(secret.text()).append("\"}");
  return write_private_file(path_of(folder, record.job), text);
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
