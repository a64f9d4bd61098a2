#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace elastic::simulation {

/// A stack of its own and the point at which its code goes on. `resume` runs the code until it
/// calls `suspend` or returns.
///
/// A switch takes some ten nanoseconds: ucontext begins a stack, and _setjmp and _longjmp, which
/// leave the signal mask alone, go back and forth. Exceptions that are being handled belong to a
/// fiber, too, so a fiber can be suspended while it handles one.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  /// One that has begun and not ended takes what is on its stack with it: nothing is destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Called outside of all fibers.
  void resume();
  /// Called by the code of this fiber.
  void suspend();
  bool ended() const { return ended_; }

 private:
  struct Handled {  // as the C++ ABI keeps it for each thread
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  /// From a pool of this thread, with a page below it that must not be touched.
  class Stack;

  static void enter(unsigned int low, unsigned int high);
  [[noreturn]] void run();
  /// Runs the code from where it stopped until it calls `leave_to_resumer`.
  void go_on();
  void leave_to_resumer();

  std::function<void()> body_;
  std::unique_ptr<Stack> stack_;
  bool begun_ = false;
  bool ended_ = false;
  ucontext_t first_{};
  std::jmp_buf here_{};
  std::jmp_buf resumer_{};
  Handled handled_;
};

}  // namespace elastic::simulation
