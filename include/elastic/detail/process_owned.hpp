#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "elastic/detail/export.hpp"

namespace elastic::detail {

/// A number that a child of fork(2) does not share with its parent.
ELASTIC_API std::uint64_t process_mark() noexcept;
/// Throws Error(kNotInitialized) in a child of the process that `mark` names.
ELASTIC_API void require_process(std::uint64_t mark);
/// Keeps an object that will not be used or destroyed.
ELASTIC_API void keep_for_ever(void* object) noexcept;

/// Owns an object for the process that made it. A child of fork(2) has a copy of the memory, but
/// not the threads, connections and shared memory behind it: there every use throws
/// Error(kNotInitialized), and destruction leaves the object as it is.
template <typename T>
class ProcessOwned {
 public:
  explicit ProcessOwned(std::unique_ptr<T> object) : object_(std::move(object)) {}
  ProcessOwned(const ProcessOwned&) = delete;
  ProcessOwned& operator=(const ProcessOwned&) = delete;
  ~ProcessOwned() {
    if (process_ != process_mark()) keep_for_ever(object_.release());
  }

  T* operator->() const {
    require_process(process_);
    return object_.get();
  }

 private:
  std::uint64_t process_ = process_mark();
  std::unique_ptr<T> object_;
};

}  // namespace elastic::detail
