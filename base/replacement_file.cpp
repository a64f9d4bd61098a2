#include "base/replacement_file.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <regex>
#include <thread>
#include <unistd.h>
#include <utility>

#include <sys/file.h>

namespace elastic {
namespace {

constexpr mode_t kMode = 0666;  // less the process's umask
constexpr mode_t kPermissions = 07777;
/// As many links in a row as Linux follows.
constexpr int kMaxLinks = 40;
constexpr std::chrono::seconds kLockTimeLimit{5};
constexpr std::chrono::milliseconds kLockPause{5};

/// The failure of the present `errno`.
Status failure(const std::string& what, const std::string& path) {
  const int error = errno;
  const std::string text = "cannot " + what + " " + path + ": " + std::strerror(error);
  const bool full = error == ENOSPC || error == EDQUOT;
  return Status(Code::kUnavailable,
                text + (full ? "; make room on that disk" : "") + "; the old file is as it was");
}

/// The target of a symbolic link, whether that exists or not; anything else is returned as it is.
std::filesystem::path target_of(std::filesystem::path place) {
  std::error_code none;
  for (int links = 0; links < kMaxLinks && std::filesystem::is_symlink(place, none); ++links) {
    place = place.parent_path() / std::filesystem::read_symlink(place, none);
  }
  return place;
}

/// Whether `name` is still the name of the open file.
bool is_named(int file, int folder, const std::string& name) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file, &open) == 0 &&
         ::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

/// A lock tells a living writer's file from a dead one's. No process waits for it.
bool lock(int file) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

ReplacementFile::ReplacementFile(std::string path, UniqueFd folder, std::string name)
    : path_(std::move(path)), folder_(std::move(folder)), name_(std::move(name)) {}

Result<ReplacementFile> ReplacementFile::create(const std::string& path) {
  const std::filesystem::path place = target_of(path);
  std::error_code unreadable;
  if (std::filesystem::is_directory(place, unreadable)) {
    return Status(Code::kInvalidArgument, "'" + path + "' is a folder; give a file's name");
  }
  if (place.filename().empty()) {
    return Status(Code::kInvalidArgument, path.empty()
                                              ? "the file's name is empty"
                                              : "'" + path + "' ends in '/'; give a file's name");
  }
  const std::string parent = place.has_parent_path() ? place.parent_path().string() : ".";
  UniqueFd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    return Status(Code::kUnavailable, "cannot write to the folder of " + path + ": " +
                                          std::strerror(errno) + "; it must exist and be writable");
  }
  ReplacementFile file(path, std::move(folder), place.filename().string());
  file.old_ = file.present();
  if (file.old_ && !S_ISREG(file.old_->st_mode)) {
    return Status(Code::kInvalidArgument, "'" + path + "' is no regular file");
  }
  if (Status opened = file.open(); !opened.ok()) return opened;
  if (Status kept = file.keep_permissions(); !kept.ok()) return kept;
  file.remove_left_over(parent);
  return file;
}

std::optional<struct stat> ReplacementFile::present() const {
  struct stat info {};
  if (::fstatat(folder_.get(), name_.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return info;
}

Status ReplacementFile::open() {
  std::random_device random;
  for (;;) {
    fresh_ = name_ + "." + std::to_string(::getpid()) + "-" + std::to_string(random()) + ".new";
    UniqueFd file(
        ::openat(folder_.get(), fresh_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!file && errno == EEXIST) continue;
    if (!file) return failure("make " + fresh_ + " beside", path_);
    // On a disk without locks, files that others leave are not removed.
    const bool removing = !lock(file.get()) && errno == EWOULDBLOCK;
    // Another writer may have taken it for left over before it was locked.
    if (removing || !is_named(file.get(), folder_.get(), fresh_)) continue;
    file_ = std::move(file);
    return {};
  }
}

Status ReplacementFile::keep_permissions() {
  struct stat fresh {};
  if (!old_) return {};
  const mode_t wanted = old_->st_mode & kPermissions;
  // Some disks have one mode for all files, and refuse to be asked for it.
  if (::fstat(file_.get(), &fresh) == 0 && (fresh.st_mode & kPermissions) == wanted) return {};
  if (::fchmod(file_.get(), wanted) == 0) return {};
  return failure("keep the permissions of", path_);
}

void ReplacementFile::remove_left_over(const std::string& folder) const {
  const std::regex own_part("\\.[0-9]+-[0-9]+\\.new");
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename().string();
    if (name == fresh_ || !name.starts_with(name_) ||
        !std::regex_match(name.substr(name_.size()), own_part)) {
      continue;
    }
    const UniqueFd file(
        ::openat(folder_.get(), name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file && lock(file.get())) ::unlinkat(folder_.get(), name.c_str(), 0);
  }
}

ReplacementFile::~ReplacementFile() {
  if (file_) ::unlinkat(folder_.get(), fresh_.c_str(), 0);
}

Status ReplacementFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return failure("write", path_);
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

/// A holder only looks at a file and renames one. One that stalls in between must not stop the
/// others.
Status ReplacementFile::lock_folder() const {
  const auto last = std::chrono::steady_clock::now() + kLockTimeLimit;
  while (!lock(folder_.get())) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return {};  // a disk without locks
    if (std::chrono::steady_clock::now() >= last) {
      return Status(Code::kUnavailable,
                    "cannot replace " + path_ +
                        ": another process has held the lock on its folder for " +
                        std::to_string(kLockTimeLimit.count()) +
                        " s; end it if it stands still; the old file is as it was");
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return {};
}

Status ReplacementFile::commit(const std::function<bool()>& goes_before) {
  if (::fsync(file_.get()) != 0) return failure("write", path_);
  if (Status locked = lock_folder(); !locked.ok()) return locked;
  const Status placed = place(goes_before);
  ::flock(folder_.get(), LOCK_UN);
  return placed;
}

Status ReplacementFile::place(const std::function<bool()>& goes_before) {
  const auto now = present();
  const bool is_another = now && !(old_ && is_same(*old_, *now));
  if (is_another && !(goes_before && goes_before())) {
    return Status(Code::kUnavailable,
                  path_ + " was replaced by another writer while this one wrote; that file stays");
  }
  const int folder = folder_.get();
  if (::renameat(folder, fresh_.c_str(), folder, name_.c_str()) != 0) {
    return failure("replace", path_);
  }
  file_.reset();
  if (::fsync(folder) == 0) return {};
  return Status(Code::kUnavailable, path_ + " was replaced, but its folder could not be synced (" +
                                        std::strerror(errno) +
                                        "): after a power cut the old one may be there");
}

}  // namespace elastic
