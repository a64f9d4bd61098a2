#include "rendezvous/launcher/private_folder.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <unistd.h>

#include <sys/stat.h>

namespace elastic::launcher {

namespace {

Status unavailable(const std::string& path, int why) {
  return Status(Code::kUnavailable, path + ": " + std::strerror(why));
}

Status check_folder(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return unavailable(folder, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid() || (info.st_mode & 077U) != 0) {
    return Status(Code::kRefused, folder + " must be a folder of yours with mode 0700; remove it");
  }
  return {};
}

/// Names that are tried where others have made the earlier ones.
constexpr int kNames = 100;

std::string numbered(const std::string& folder, int name) {
  return name == 0 ? folder : folder + "-" + std::to_string(name);
}

/// Whose the file itself is, not what a link leads to; nothing where there is none.
std::optional<uid_t> owner_of(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_uid;
}

}  // namespace

Status make_private_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return unavailable(folder, errno);
  return check_folder(folder);
}

Result<std::string> private_folder(const std::map<std::string, std::string>& environment) {
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  const bool usable = runtime != environment.end() && !runtime->second.empty() &&
                      ::access(runtime->second.c_str(), W_OK | X_OK) == 0;
  const std::string usual =
      (usable ? runtime->second : "/tmp") + "/elastic-" + std::to_string(::getuid());
  // One that is there already first: what is in the others' way may be gone since it was made.
  for (int name = 0; name < kNames; ++name) {
    const std::string folder = numbered(usual, name);
    if (owner_of(folder) != ::getuid()) continue;
    if (Status status = check_folder(folder); !status.ok()) return status;
    return folder;
  }
  for (int name = 0; name < kNames; ++name) {
    const std::string folder = numbered(usual, name);
    const bool made = ::mkdir(folder.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) {
      Status status = unavailable(folder, errno);
      return Status(status.code(), status.message() + "; set XDG_RUNTIME_DIR to a folder of yours");
    }
    if (!made && owner_of(folder) != ::getuid()) continue;
    if (Status status = check_folder(folder); !status.ok()) return status;
    return folder;
  }
  return Status(Code::kRefused, usual + " and " + numbered(usual, 1) + " to " +
                                    numbered(usual, kNames - 1) +
                                    " belong to other users: set XDG_RUNTIME_DIR to a folder of "
                                    "yours");
}

}  // namespace elastic::launcher
