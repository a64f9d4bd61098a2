#pragma once

#include <string>
#include <utility>

#include "base/secret.hpp"
#include "base/status.hpp"

namespace elastic::rendezvous {

/// A file with a fresh secret that only this user can read; removed at the end.
class SecretFile {
 public:
  SecretFile() = default;
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  ~SecretFile();

  Status create(const Secret& secret);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A file about this server that another process writes, removed at the end. By then it may be
/// about a later server.
class RecordOfServer {
 public:
  /// `path`: empty for none.
  explicit RecordOfServer(std::string path) : path_(std::move(path)) {}
  RecordOfServer(const RecordOfServer&) = delete;
  RecordOfServer& operator=(const RecordOfServer&) = delete;
  ~RecordOfServer();

 private:
  std::string path_;
};

/// Writes a server's address and process id as JSON. Readers see all of it or nothing. A file at
/// `path`, of an earlier server or a link, is replaced, and written to through no link: the folder
/// may be one where others can make files.
Status write_port_file(const std::string& path, const std::string& address);

}  // namespace elastic::rendezvous
