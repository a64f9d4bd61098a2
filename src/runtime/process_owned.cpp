#include "elastic/process_owned.hpp"

#include <new>

#include "base/process_mark.hpp"
#include "elastic/error.hpp"

namespace elastic::detail {

std::uint64_t process_mark() noexcept {
  return elastic::process_mark();
}

void require_process(std::uint64_t mark) {
  if (mark == elastic::process_mark()) return;
  throw Error(ErrorCode::kNotInitialized,
              "this process is a forked child of a worker, and not the worker itself: a child may "
              "compute, exit or execute a program, but only the worker can call elastic");
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
