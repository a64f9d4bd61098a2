#include "base/secret_descriptor.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <string>
#include <string_view>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/forked_child.hpp"
#include "base/mutex.hpp"

namespace elastic {

namespace {

constexpr const char* kName = "elastic-secret";
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

/// The secrets that this process has read, by the descriptor's number.
struct Kept {
  Mutex mutex;
  std::map<int, Secret> secrets ELASTIC_GUARDED_BY(mutex);
};

Kept& kept() {
  static Kept the;
  return the;
}

/// Inherited, and made by `secret_descriptor`. Descriptors of the library itself close on exec, so
/// none of them is inherited.
bool is_inherited_secret(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return false;
  if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) return false;
  std::array<char, 64> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  const std::string expected = std::string("/memfd:") + kName + " (deleted)";
  return length > 0 &&
         std::string_view(target.data(), static_cast<std::size_t>(length)) == expected;
}

void close_secret(int fd) {
  if (fd > STDERR_FILENO) {
    ::close(fd);
    return;
  }
  // The number of a standard stream stays taken: the next file that is opened is not to have it.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) (void)::dup2(null.get(), fd);
}

std::string name(int fd) {
  return "descriptor " + std::to_string(fd) + " (ELASTIC_SECRET_FD)";
}

Result<Secret> read_regular_file(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return Status(Code::kInvalidArgument,
                  "there is no " + name(fd) +
                      " to read the job's secret from: " + std::strerror(errno) +
                      ". A worker closes it once it has read the secret, so neither a program that "
                      "it executes nor a child process can join the job by it");
  }
  if (!S_ISREG(info.st_mode)) {
    return Status(Code::kInvalidArgument,
                  name(fd) +
                      " is not a file with the job's secret: the number may have been "
                      "reused since the secret's descriptor was closed. To read the "
                      "secret from a pipe, set ELASTIC_SECRET_FILE=/dev/fd/" +
                      std::to_string(fd));
  }
  Result<Secret> read = read_secret(fd, name(fd));
  if (read.ok()) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return read;
}

}  // namespace

Result<UniqueFd> secret_descriptor(const Secret& secret) {
  UniqueFd file(::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  SecretText holder(to_hex(secret));
  std::string& text = holder.text();
  text += '\n';
  if (!file || ::fchmod(file.get(), 0600) != 0 ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0 || ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return Status(Code::kUnavailable, std::string("memfd_create: ") + std::strerror(errno));
  }
  return file;
}

Result<Secret> read_secret_fd(int fd) {
  Kept& known = kept();
  const MutexLock lock(known.mutex);
  const bool is_ours = is_inherited_secret(fd);
  const auto before = known.secrets.find(fd);
  const bool known_before = !is_ours && before != known.secrets.end();
  // A forked child has none: the kernel has wiped it.
  const bool wiped = known_before && before->second.bytes().empty();
  if (known_before && !wiped) return before->second;
  Result<Secret> read = is_ours ? read_secret(fd, name(fd)) : read_regular_file(fd);
  if (!read.ok() && wiped) return Status(Code::kNotInitialized, kForkedChild);
  if (is_ours) close_secret(fd);
  if (read.ok()) known.secrets[fd] = read.value();
  return read;
}

}  // namespace elastic
