#include "rendezvous/launcher/private_folder.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace elastic::launcher {

namespace {

Status unavailable(const std::string& path, int why) {
  return Status(Code::kUnavailable, path + ": " + std::strerror(why));
}

}  // namespace

Status make_private_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return unavailable(folder, errno);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return unavailable(folder, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid() || (info.st_mode & 077U) != 0) {
    return Status(Code::kRefused, folder + " must be a folder of yours with mode 0700; remove it");
  }
  return {};
}

Result<std::string> private_folder(const std::map<std::string, std::string>& environment) {
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  const bool usable = runtime != environment.end() && !runtime->second.empty() &&
                      ::access(runtime->second.c_str(), W_OK | X_OK) == 0;
  const std::string folder =
      (usable ? runtime->second : "/tmp") + "/elastic-" + std::to_string(::getuid());
  if (Status status = make_private_folder(folder); !status.ok()) return status;
  return folder;
}

Status write_private_file(const std::string& path, const std::string& content) {
  const std::string fresh = path + "." + std::to_string(::getpid()) + ".new";
  ::unlink(fresh.c_str());
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return unavailable(fresh, errno);
  const ssize_t written = ::write(file.get(), content.data(), content.size());
  if (written != static_cast<ssize_t>(content.size()) ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(fresh.c_str());
    return unavailable(path, why);
  }
  return {};
}

}  // namespace elastic::launcher
