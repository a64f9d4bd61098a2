#include "rendezvous/server/program_files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace elastic::rendezvous {

namespace {

Status cannot_write(const std::string& path) {
  const int why = errno;
  return Status(Code::kUnavailable, "cannot write " + path + ": " + std::strerror(why) +
                                        (why == ENOENT ? "; make its folder first" : ""));
}

bool write_text(int fd, const std::string& text) {
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

SecretFile::~SecretFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status SecretFile::create(const Secret& secret) {
  std::string path = "/tmp/elastic-secret-XXXXXX";
  const UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));  // mode 0600
  if (!file) return cannot_write(path);
  path_ = path;
  SecretText text(to_hex(secret));
  text.text() += '\n';
  if (!write_text(file.get(), text.text())) return cannot_write(path);
  return {};
}

RecordOfServer::~RecordOfServer() {
  if (path_.empty()) return;
  std::ifstream file(path_);
  const auto record = nlohmann::json::parse(file, nullptr, false);
  const auto pid = record.is_object() ? record.find("pid") : record.end();
  if (pid != record.end() && *pid == ::getpid()) ::unlink(path_.c_str());
}

Status write_port_file(const std::string& path, const std::string& address) {
  const nlohmann::json content{{"address", address}, {"pid", ::getpid()}};
  const std::string fresh = path + "." + random_id() + ".new";
  const UniqueFd file(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return cannot_write(path);
  if (!write_text(file.get(), content.dump() + "\n") ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    const Status failed = cannot_write(path);
    ::unlink(fresh.c_str());
    return failed;
  }
  return {};
}

}  // namespace elastic::rendezvous
