#include "base/descriptor_limit.hpp"

#include <atomic>
#include <limits>

#include <sys/resource.h>

namespace elastic {
namespace {

std::atomic<rlim_t> limit_before{RLIM_INFINITY};  // as it was at the start, once it is raised
static_assert(std::atomic<rlim_t>::is_always_lock_free, "read in a child of fork");

}  // namespace

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::size_t>::max();
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return before;
  rlim_t never = RLIM_INFINITY;
  limit_before.compare_exchange_strong(never, before);
  return limit.rlim_cur;
}

void restore_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit_before >= limit.rlim_cur) return;
  limit.rlim_cur = limit_before;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace elastic
