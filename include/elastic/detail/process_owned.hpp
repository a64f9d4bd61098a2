#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "elastic/detail/export.hpp"

namespace elastic::detail {

/// A number that a child of fork(2) does not share with its parent.
ELASTIC_API std::uint64_t process_mark() noexcept;
/// Throws Error(kNotInitialized) in a child of the process that `mark` names.
ELASTIC_API void require_process(std::uint64_t mark);
/// Throws Error(kNotInitialized): the object is gone.
[[noreturn]] ELASTIC_API void throw_ended();
/// Waits until `users` are no more than this thread itself, for 2 s at the longest.
/// \returns whether they are.
ELASTIC_API bool wait_until_unused(const std::atomic<int>& users);
/// Keeps an object that will not be used or destroyed.
ELASTIC_API void keep_for_ever(void* object) noexcept;

/// Owns an object for the process that made it. A child of fork(2) has a copy of the memory, but
/// not the threads, connections and shared memory behind it: there every use throws
/// Error(kNotInitialized), and destruction leaves the object as it is.
///
/// Thread safety: `end` may be called while other threads use the object.
template <typename T>
class ProcessOwned {
 public:
  /// Keeps the object for the time of one expression.
  class Use {
   public:
    explicit Use(const ProcessOwned& owner) : owner_(owner) {
      // In this order, as `end` sets `ended_` before it looks at `users_`.
      owner_.users_.fetch_add(1);
      if (!owner_.ended_.load()) return;
      owner_.users_.fetch_sub(1);
      throw_ended();
    }
    ~Use() { owner_.users_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    T* operator->() const { return owner_.object_.get(); }
    /// Begins one more use. \returns the number of uses: that one ends when it is counted down.
    std::atomic<int>& prolong() const {
      owner_.users_.fetch_add(1);
      return owner_.users_;
    }

   private:
    const ProcessOwned& owner_;
  };

  explicit ProcessOwned(std::unique_ptr<T> object) : object_(std::move(object)) {}
  ProcessOwned(const ProcessOwned&) = delete;
  ProcessOwned& operator=(const ProcessOwned&) = delete;
  ~ProcessOwned() {
    if (process_ != process_mark()) keep_for_ever(object_.release());
  }

  /// Whether this is the process that made the object.
  bool is_ours() const { return process_ == process_mark(); }

  Use operator->() const {
    require_process(process_);
    return Use(*this);
  }
  /// Destroys the object when no thread uses it any more. From now on every use throws; then `stop`
  /// is called with the object, and has the uses under way end soon.
  template <typename Stop>
  void end(const Stop& stop) {
    require_process(process_);
    if (ended_.exchange(true)) return;
    stop(*object_);
    if (wait_until_unused(users_)) object_.reset();
  }

 private:
  mutable std::atomic<int> users_{0};
  std::atomic<bool> ended_{false};
  std::uint64_t process_ = process_mark();
  std::unique_ptr<T> object_;
};

}  // namespace elastic::detail
