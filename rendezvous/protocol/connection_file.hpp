#pragma once

#include <string>
#include <utility>

#include "base/secret.hpp"
#include "base/status.hpp"

namespace elastic::rendezvous {

/// All that a process needs to reach a job's server.
struct JobContact {
  std::string job;
  std::string address;  ///< "host:port"
  Secret secret{};
  bool encrypt = false;
};

/// Writes JSON with mode 0600 for the processes of other hosts, in a folder that hosts share.
Status write_connection_file(const std::string& path, const JobContact& contact);

/// kUnavailable: there is no such file yet. kInvalidArgument: it cannot be trusted or read.
Result<JobContact> read_connection_file(const std::string& path);

/// A connection file for as long as this object lives.
class ConnectionFile {
 public:
  static Result<ConnectionFile> create(const std::string& path, const JobContact& contact);
  ConnectionFile(ConnectionFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ConnectionFile& operator=(ConnectionFile&&) = delete;
  ~ConnectionFile();

 private:
  explicit ConnectionFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// "host:port" of a server that listens on `listening`, for other hosts: one that is bound to all
/// addresses is reached at `host`, or at the first address of this machine where that is empty.
std::string address_for_others(const std::string& listening, std::string host);

}  // namespace elastic::rendezvous
