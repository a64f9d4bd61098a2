#include "elastic/detail/process_owned.hpp"

#include <new>

#include "base/forked_child.hpp"
#include "base/process_mark.hpp"
#include "elastic/error.hpp"

namespace elastic::detail {

std::uint64_t process_mark() noexcept {
  return elastic::process_mark();
}

void require_process(std::uint64_t mark) {
  if (mark == elastic::process_mark()) return;
  throw Error(ErrorCode::kNotInitialized, kForkedChild);
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
