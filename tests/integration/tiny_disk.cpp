#include "integration/tiny_disk.hpp"

#include <fcntl.h>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/mount.h>

namespace elastic::testing {

namespace {

std::string size_option(std::size_t bytes) {
  return "size=" + std::to_string(bytes);
}

}  // namespace

TinyDisk::TinyDisk(std::size_t bytes) {
  // A mount in a namespace of this process ends with it, however it ends.
  mounted_ = ::unshare(CLONE_NEWNS) == 0 &&
             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             ::mount("tmpfs", path().c_str(), "tmpfs", 0, size_option(bytes).c_str()) == 0;
}

TinyDisk::~TinyDisk() {
  if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
}

void TinyDisk::fill() {
  const int file = ::open((path() / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::vector<char> page(4096, 'x');
  while (::write(file, page.data(), page.size()) > 0) {
  }
  ::close(file);
}

void TinyDisk::make_room() {
  std::filesystem::remove(path() / "filler");
}

void TinyDisk::grow(std::size_t bytes) {
  ::mount("tmpfs", path().c_str(), "tmpfs", MS_REMOUNT, size_option(bytes).c_str());
}

}  // namespace elastic::testing
