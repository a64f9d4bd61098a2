#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

#include "collectives/transport/shm/arena.hpp"

namespace elastic::transport {

Result<std::unique_ptr<ArenaView>> ArenaView::open(UniqueFd file) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Status(Code::kProtocol,
                  "a peer passed memory for tensors that is none of elastic: it could shrink while "
                  "it is read");
  }
  return std::unique_ptr<ArenaView>(new ArenaView(std::move(file)));
}

ArenaView::~ArenaView() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

Status ArenaView::reach(std::uint64_t offset, std::uint64_t bytes) {
  const auto within = [&](std::uint64_t size) { return offset <= size && bytes <= size - offset; };
  if (within(mapped_)) return {};
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) {
    return Status(Code::kUnavailable,
                  std::string("cannot look at a peer's memory: ") + std::strerror(errno));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (!within(size)) {
    return Status(Code::kProtocol, "a peer's tensor of " + std::to_string(bytes) + " bytes at " +
                                       std::to_string(offset) + " is not in its memory of " +
                                       std::to_string(size) + " bytes");
  }
  // Anew, not by mremap(2), of which ThreadSanitizer knows nothing: it takes what it remembers of
  // an address for what lay there before. A peer's memory grows seldom.
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) {
    return Status(Code::kUnavailable,
                  std::string("cannot map a peer's memory: ") + std::strerror(errno));
  }
  if (data_ != nullptr) ::munmap(data_, mapped_);
  data_ = static_cast<std::byte*>(mapped);
  mapped_ = size;
  // As its owner has it.
  ::madvise(data_, mapped_, MADV_HUGEPAGE);
  return {};
}

}  // namespace elastic::transport
