#include "rendezvous/launcher/notice/notice_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace elastic::notice {

namespace {

using Text = Result<std::optional<std::string>>;

/// A notice is a number of seconds.
constexpr std::size_t kMostFileBytes = 4096;

Status unusable(const std::string& path, const std::string& why) {
  return Status(Code::kInvalidArgument, "the file " + path + " " + why);
}

Text no_text(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) return std::optional<std::string>();
  return Status(Code::kUnavailable,
                "the file " + path + " cannot be read: " + std::strerror(error));
}

}  // namespace

Text read_notice_file(const std::string& path) {
  // Before it is opened: a pipe's writer would take this for its reader.
  struct stat kind {};
  if (::stat(path.c_str(), &kind) != 0) return no_text(path, errno);
  if (S_ISDIR(kind.st_mode)) {
    return unusable(path,
                    "is a directory, and no notice: remove it, or name a regular file (Docker's -v "
                    "makes a directory where there is no file; mount the folder instead)");
  }
  if (!S_ISREG(kind.st_mode)) {
    return unusable(path, "is a device, a pipe or a socket, and no notice: name a regular file");
  }
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return no_text(path, errno);
  std::string text(kMostFileBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return no_text(path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kMostFileBytes) {
    return unusable(path, "has more than " + std::to_string(kMostFileBytes) +
                              " bytes, and is no notice: write a number of seconds into it, or "
                              "nothing");
  }
  text.resize(size);
  return std::optional(std::move(text));
}

}  // namespace elastic::notice
