#include "elastic/detail/process_owned.hpp"

#include <chrono>
#include <new>
#include <thread>

#include "base/forked_child.hpp"
#include "base/process_mark.hpp"
#include "elastic/error.hpp"
#include "runtime/own_run.hpp"

namespace elastic::detail {

std::uint64_t process_mark() noexcept {
  return elastic::process_mark();
}

void require_process(std::uint64_t mark) {
  if (mark == elastic::process_mark()) return;
  throw Error(ErrorCode::kNotInitialized, kForkedChild);
}

void throw_ended() {
  throw Error(ErrorCode::kNotInitialized,
              "this worker has left the job by elastic::shutdown; make all calls before");
}

bool wait_until_unused(const std::atomic<int>& users) {
  constexpr std::chrono::seconds kLongest(2);
  const auto last = std::chrono::steady_clock::now() + kLongest;
  const int own = runtime::OwnRun::count();
  while (users.load() > own && std::chrono::steady_clock::now() < last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // there are none as a rule
  }
  return users.load() <= own;
}

void keep_for_ever(void* object) noexcept {
  // A static list, in which leak checkers find it. Without memory for a node the object is kept all
  // the same.
  struct Kept {
    void* object;
    Kept* before;
  };
  static Kept* last = nullptr;
  last = new (std::nothrow) Kept{object, last};
}

}  // namespace elastic::detail
