#include "base/process_mark.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
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
/// has another inode. In pages, of which few processes need another than the first.
constexpr std::size_t kNumbers = 1U << 12;
constexpr std::size_t kPages = (std::size_t{1} << 31) / kNumbers;
using Page = std::array<std::atomic<std::uint64_t>, kNumbers>;
Page first_page;
std::array<std::atomic<Page*>, kPages> more_pages;  // the first of them stays null

/// Null where there is none yet.
Page* page_of(std::size_t number) noexcept {
  const std::size_t page = number / kNumbers;
  return page == 0 ? &first_page : more_pages[page].load(std::memory_order_acquire);
}

/// Null where there is no memory for it.
Page* make_page_of(std::size_t number) noexcept {
  if (Page* const present = page_of(number)) return present;
  std::unique_ptr<Page> made(new (std::nothrow) Page());
  Page* present = nullptr;
  if (!more_pages[number / kNumbers].compare_exchange_strong(present, made.get())) return present;
  return made.release();
}

std::uint64_t entry_of(int fd) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return 0;
  return std::uint64_t{info.st_ino} + 1;
}

void close_sockets_of(Page& page, std::size_t first, std::size_t end) {
  for (std::size_t at = 0; at < kNumbers && first + at < end; ++at) {
    const std::uint64_t entry = page[at].load(std::memory_order_relaxed);
    if (entry == 0) continue;
    page[at].store(0, std::memory_order_relaxed);
    const int fd = static_cast<int>(first + at);
    if (entry_of(fd) == entry) ::close(fd);
  }
}

/// One past the greatest number so far.
std::atomic<std::size_t> end_of_numbers{0};

/// In the child, which has one thread. Async-signal-safe.
void close_sockets() {
  const std::size_t end = end_of_numbers.load(std::memory_order_relaxed);
  for (std::size_t first = 0; first < end; first += kNumbers) {
    if (Page* const page = page_of(first)) close_sockets_of(*page, first, end);
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
  Page* const page = registered == 0 && fd >= 0 ? make_page_of(number) : nullptr;
  if (page == nullptr) return;
  (*page)[number % kNumbers].store(entry_of(fd), std::memory_order_relaxed);
  std::size_t end = end_of_numbers.load(std::memory_order_relaxed);
  while (end <= number && !end_of_numbers.compare_exchange_weak(end, number + 1)) {
  }
}

}  // namespace elastic
