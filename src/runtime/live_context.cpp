#include "runtime/live_context.hpp"

#include <atomic>
#include <cstdint>

#include "base/process_mark.hpp"
#include "elastic/detail/process_owned.hpp"

namespace elastic::runtime {

namespace {

/// A child inherits both. Its parent's objects are not destroyed in it, so that the number stays.
std::atomic<int> live{0};
std::atomic<std::uint64_t> process{0};

}  // namespace

LiveContext::LiveContext() {
  if (live.load() > 0) detail::require_process(process.load());
  process.store(process_mark());
  live.fetch_add(1);
}

LiveContext::~LiveContext() {
  live.fetch_sub(1);
}

}  // namespace elastic::runtime
