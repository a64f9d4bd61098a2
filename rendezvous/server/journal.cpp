#include "rendezvous/server/journal.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <xxhash.h>

#include "rendezvous/protocol/codec.hpp"

namespace elastic::rendezvous {

namespace {

Status failed(const std::string& path, const char* what) {
  return Status(Code::kUnavailable,
                "journal " + path + ": cannot " + what + ": " + std::strerror(errno));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The file's name must be durable too.
bool sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::fsync(fd.get()) == 0;
}

}  // namespace

Result<std::unique_ptr<FileJournal>> FileJournal::open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return failed(path, "open it");
  if (!sync_folder_of(path)) return failed(path, "sync its folder");
  return std::unique_ptr<FileJournal>(new FileJournal(path, std::move(file)));
}

Status FileJournal::append(const View& view) {
  const std::string record = encode(Announce{view});
  std::array<char, 17> sum{};
  std::snprintf(sum.data(), sum.size(), "%016llx",
                static_cast<unsigned long long>(XXH64(record.data(), record.size(), 0)));
  const std::string line =
      std::string("{\"xxh64\":\"") + sum.data() + "\",\"record\":" + record + "}\n";
  if (!write_all(file_.get(), line)) return failed(path_, "write to it");
  if (::fdatasync(file_.get()) != 0) return failed(path_, "sync it");
  return {};
}

}  // namespace elastic::rendezvous
