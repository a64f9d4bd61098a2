#include "collectives/transport/shm/arena.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <sys/mman.h>

#include "collectives/transport/ring/shared_memory.hpp"

namespace elastic::transport {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

/// More than this no process can have.
std::size_t physical_memory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<std::shared_ptr<Arena>> Arena::create() {
  UniqueFd file(::memfd_create("elastic-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return memory_error("cannot make shared memory for tensors");
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return memory_error("cannot seal shared memory for tensors");
  }
  return std::shared_ptr<Arena>(new Arena(std::move(file)));
}

Arena::~Arena() {
  if (std::byte* const base = base_.load()) ::munmap(base, reserved_);
}

/// Addresses for all that there can ever be, so that nothing has to move when the file grows.
Status Arena::reserve() {
  const std::size_t bytes = rounded_up(physical_memory(), kHugePage);
  void* const room = ::mmap(nullptr, bytes + kHugePage, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return memory_error("cannot reserve addresses for tensors");
  const auto first = reinterpret_cast<std::uintptr_t>(room);
  const std::size_t before = rounded_up(first, kHugePage) - first;
  std::byte* const base = static_cast<std::byte*>(room) + before;
  if (before > 0) ::munmap(room, before);
  if (before < kHugePage) ::munmap(base + bytes, kHugePage - before);
  if (::mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
             file_.get(), 0) == MAP_FAILED) {
    const Status failure = memory_error("cannot map memory for tensors");
    ::munmap(base, bytes);
    return failure;
  }
  // Nearly all of it is not there; what is, `provide` says.
  ::madvise(base, bytes, MADV_DONTDUMP);
  reserved_ = bytes;
  free_ = {{0, bytes}};
  base_.store(base, std::memory_order_release);
  return {};
}

Result<std::byte*> Arena::allocate(std::size_t bytes) {
  const MutexLock lock(mutex_);
  std::byte* base = base_.load(std::memory_order_relaxed);
  if (base == nullptr) {
    if (Status status = reserve(); !status.ok()) return status;
    base = base_.load(std::memory_order_relaxed);
  }
  const std::string wanted = "no memory for a tensor of " + std::to_string(bytes) + " bytes";
  const auto room = bytes > reserved_
                        ? std::nullopt
                        : take(rounded_up(bytes, kPage), bytes < kHugePage ? kPage : kHugePage);
  if (!room) {
    return Status(Code::kUnavailable, wanted + ": this machine has " + std::to_string(reserved_) +
                                          " bytes, less what elastic::allocate has given out");
  }
  if (Status status = provide(*room, rounded_up(bytes, kPage)); !status.ok()) {
    give_back(*room, rounded_up(bytes, kPage));
    return status.within(wanted);
  }
  return base + *room;
}

/// First fit.
std::optional<std::size_t> Arena::take(std::size_t bytes, std::size_t alignment) {
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const auto [begin, size] = *hole;
    const std::size_t first = rounded_up(begin, alignment);
    if (first - begin > size || size - (first - begin) < bytes) continue;
    const std::size_t behind = begin + size - (first + bytes);
    if (first == begin) {
      free_.erase(hole);
    } else {
      hole->second = first - begin;
    }
    if (behind > 0) free_.emplace(first + bytes, behind);
    return first;
  }
  return std::nullopt;
}

/// Lets the file have these bytes, and the bytes their pages.
Status Arena::provide(std::size_t offset, std::size_t bytes) {
  const std::size_t end = rounded_up(offset + bytes, bytes < kHugePage ? kPage : kHugePage);
  if (end > file_bytes_) {
    if (::ftruncate(file_.get(), static_cast<off_t>(end)) != 0) {
      return memory_error("cannot enlarge shared memory");
    }
    file_bytes_ = end;
  }
  std::byte* const memory = base_.load(std::memory_order_relaxed) + offset;
  ::madvise(memory, bytes, MADV_DODUMP);
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  if (populate(memory, bytes)) return {};
  if (errno != EINVAL) return memory_error("cannot fill shared memory");
  // A kernel before 5.14. The pages come, to be mapped when they are touched.
  if (::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) {
    return {};
  }
  return memory_error("cannot fill shared memory");
}

void Arena::free(std::byte* memory, std::size_t bytes) noexcept {
  // A child of fork(2) has the same file: what is nothing to it may be everything to its parent.
  if (::getpid() != process_) return;
  const MutexLock lock(mutex_);
  give_back(static_cast<std::size_t>(memory - base_.load(std::memory_order_relaxed)),
            rounded_up(bytes, kPage));
}

void Arena::give_back(std::size_t offset, std::size_t bytes) {
  if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    return;  // The next owner of these addresses would expect zeros: there is none.
  }
  auto behind = free_.lower_bound(offset);
  if (behind != free_.end() && behind->first == offset + bytes) {
    bytes += behind->second;
    behind = free_.erase(behind);
  }
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace_hint(behind, offset, bytes);
}

std::optional<std::uint64_t> Arena::offset_of(const std::byte* memory, std::size_t bytes) const {
  const auto base = reinterpret_cast<std::uintptr_t>(base_.load(std::memory_order_acquire));
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (base == 0 || at < base || at - base > reserved_ || bytes > reserved_ - (at - base)) {
    return std::nullopt;
  }
  return at - base;
}

}  // namespace elastic::transport
