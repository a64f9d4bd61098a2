#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace elastic::rendezvous {

/// Turns of the connections that send large messages. A view goes to all workers at once; were all
/// begun together, they would fill the kernel's memory for TCP, and none would arrive for long.
/// So some are written at a time, and the others wait.
///
/// Belongs to the thread of its connections.
class LargeWrites : public std::enable_shared_from_this<LargeWrites> {
 public:
  /// Shorter messages do not wait.
  static constexpr std::size_t kLargeBytes = 64 * 1024;

  /// A turn; its end lets another connection write.
  class Turn {
   public:
    Turn() = default;
    explicit Turn(std::shared_ptr<LargeWrites> writes) : writes_(std::move(writes)) {}
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&& other) noexcept {
      std::swap(writes_, other.writes_);
      return *this;
    }
    ~Turn() {
      if (writes_) writes_->next();
    }

   private:
    std::shared_ptr<LargeWrites> writes_;
  };
  using Write = std::function<void(Turn)>;

  /// Calls `write` with a turn, now or when there is one.
  void wait(Write write) {
    waiting_.push_back(std::move(write));
    if (under_way_ == kAtOnce) return;
    ++under_way_;
    next_one();
  }

 private:
  static constexpr std::size_t kAtOnce = 64;

  void next() {
    if (waiting_.empty()) {
      --under_way_;
    } else {
      next_one();
    }
  }
  void next_one() {
    const Write write = std::move(waiting_.front());
    waiting_.pop_front();
    write(Turn(shared_from_this()));
  }

  std::size_t under_way_ = 0;
  std::deque<Write> waiting_;
};

}  // namespace elastic::rendezvous
