#include "rendezvous/server/reserved_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace elastic::rendezvous {

Status file_failure(const std::string& path, const char* what) {
  const int error = errno;
  const std::string why = std::strerror(error);
  if (error != ENOSPC && error != EDQUOT) {
    return Status(Code::kInternal,
                  "cannot " + std::string(what) + " the journal " + path + ": " + why);
  }
  return Status(Code::kUnavailable,
                "the journal's disk is full: " + path + " (" + why + "); make room on that disk");
}

ReservedFile::ReservedFile(UniqueFd file, std::string path, std::size_t end, std::size_t reserved)
    : file_(std::move(file)),
      path_(std::move(path)),
      end_(end),
      reserved_(std::max(end, reserved)) {}

Status ReservedFile::reserve(std::size_t bytes) {
  const std::size_t wanted = end_ + bytes;
  if (wanted <= reserved_) return {};
  int error = 0;
  do {
    error = ::posix_fallocate(file_.get(), static_cast<off_t>(reserved_),
                              static_cast<off_t>(wanted - reserved_));
  } while (error == EINTR);
  if (error != 0) {
    // Some file systems keep what they had found until there was no more; others may need it.
    [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(reserved_));
    errno = error;
    return file_failure(path_, "reserve space for");
  }
  reserved_ = wanted;
  return {};
}

Status ReservedFile::add(std::string_view text) {
  if (Status room = reserve(text.size()); !room.ok()) return room;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::pwrite(file_.get(), text.data() + done, text.size() - done,
                                     static_cast<off_t>(end_ + done));
    if (written < 0 && errno != EINTR) return file_failure(path_, "write to");
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  if (::fdatasync(file_.get()) != 0) return file_failure(path_, "sync");
  end_ += text.size();
  return {};
}

Status ReservedFile::cut() {
  if (::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0) return file_failure(path_, "cut");
  reserved_ = end_;
  if (::fsync(file_.get()) != 0) return file_failure(path_, "sync");
  return {};
}

}  // namespace elastic::rendezvous
