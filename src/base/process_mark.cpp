#include "base/process_mark.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <pthread.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

namespace elastic {

namespace {

using Mark = std::atomic<std::uint64_t>;
static_assert(Mark::is_always_lock_free);

/// The mark of this process; 0 in a child that has not drawn one yet. The kernel wipes the page in
/// every child, however it is made; where it cannot (before Linux 4.14), a handler of fork(2) does
/// it.
Mark& present_mark() noexcept {
  static Mark fallback{0};
  static Mark* const mark = [] {
    ::pthread_atfork(nullptr, nullptr, [] { present_mark().store(0, std::memory_order_relaxed); });
    void* const page =
        ::mmap(nullptr, sizeof(Mark), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || ::madvise(page, sizeof(Mark), MADV_WIPEONFORK) != 0) return &fallback;
    return new (page) Mark(0);
  }();
  return *mark;
}

/// A child inherits it, and so draws others than its parent had before.
std::atomic<std::uint64_t> last_mark{0};

/// The sockets: by their numbers the inodes, with 1 added. A number that was closed and taken again
/// has another inode.
constexpr std::size_t kNumbers = 1U << 16;
std::array<std::atomic<std::uint64_t>, kNumbers> sockets;
std::atomic<std::size_t> end_of_numbers{0};

std::uint64_t entry_of(int fd) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return 0;
  return std::uint64_t{info.st_ino} + 1;
}

/// In the child, which has one thread. Async-signal-safe.
void close_sockets() {
  const std::size_t end = end_of_numbers.load(std::memory_order_relaxed);
  for (std::size_t number = 0; number < end; ++number) {
    const std::uint64_t entry = sockets[number].load(std::memory_order_relaxed);
    if (entry == 0) continue;
    sockets[number].store(0, std::memory_order_relaxed);
    const int fd = static_cast<int>(number);
    if (entry_of(fd) == entry) ::close(fd);
  }
}

}  // namespace

std::uint64_t process_mark() noexcept {
  Mark& mark = present_mark();
  std::uint64_t present = mark.load(std::memory_order_relaxed);
  if (present != 0) return present;
  const std::uint64_t drawn = last_mark.fetch_add(1, std::memory_order_relaxed) + 1;
  return mark.compare_exchange_strong(present, drawn) ? drawn : present;
}

void close_in_children(int fd) noexcept {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_sockets);
  const auto number = static_cast<std::size_t>(fd);
  if (registered != 0 || fd < 0 || number >= kNumbers) return;
  sockets[number].store(entry_of(fd), std::memory_order_relaxed);
  std::size_t end = end_of_numbers.load(std::memory_order_relaxed);
  while (end <= number && !end_of_numbers.compare_exchange_weak(end, number + 1)) {
  }
}

}  // namespace elastic
