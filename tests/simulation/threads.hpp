#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chance.hpp"
#include "descriptors.hpp"
#include "fiber.hpp"
#include "virtual_time.hpp"

namespace elastic::simulation {

class Process;
class Threads;

/// A thread of a simulated process: a fiber that runs when the scheduler lets it.
class Thread {
 public:
  Thread(Threads& threads, Process& process, std::size_t number, std::string name,
         std::function<void()> body);

  Process& process() const { return process_; }
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  bool ended() const { return fiber_.ended(); }
  /// Describes for people what the thread waits for.
  std::string describe() const;

 private:
  friend class Threads;

  enum class State : std::uint8_t { kRunnable, kRunning, kBlocked };

  Threads& threads_;
  Process& process_;
  const std::size_t number_;  // in the order of their starts
  std::string name_;
  Fiber fiber_;
  State state_ = State::kRunnable;
  std::uint64_t turn_ = 0;  // counts changes of the state: tells a timer that is late
  const void* waits_for_ = nullptr;
  const char* how_ = "";                     // it waits
  bool woken_ = false;                       // rather than that its time was up
  std::uint64_t calls_without_waiting_ = 0;  // at which others could have run
  std::string failure_;                      // an exception that left its body
};

/// The scheduler of all threads of all simulated processes: they take turns on one real thread, and
/// the seed decides which goes on when. A thread runs in no time, but when it is interrupted: at
/// system calls, mutexes and looks at the clock, by chance.
///
/// While it is active, it is what the interposed functions of the C library on this real thread
/// turn to (system_calls.cpp).
class Threads {
 public:
  Threads(VirtualTime& time, Chance& chance);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// The scheduler of this real thread; null if no thread is simulated.
  static Threads* active();
  /// The scheduler is active while a run goes on.
  void set_active(bool active);
  /// The simulated thread that runs now; null between them, where events happen.
  Thread* current() const { return current_; }

  Thread& start(Process& process, std::string name, std::function<void()> body);
  bool knows(const Thread* thread) const;

  /// While one exists, the current thread is not interrupted, and may read data that other threads
  /// have locked: for checks in the middle of a thread's work.
  class Undisturbed {
   public:
    Undisturbed() : threads_(*Threads::active()) { ++threads_.undisturbed_; }
    ~Undisturbed() { --threads_.undisturbed_; }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

   private:
    Threads& threads_;
  };
  bool undisturbed() const { return undisturbed_ > 0 || current_ == nullptr; }

  // For the current thread.
  /// Waits until it is woken or `deadline`; false for the latter.
  bool block(const void* on, const char* how, TimePoint deadline = TimePoint::max());
  void sleep(Duration length);
  void join(const Thread& thread);
  /// Lets others run, by chance.
  void interrupt();
  void yield();
  /// The time as it sees it: looking takes some.
  TimePoint look_at_clock();

  void wake(Thread& thread);
  void wake_all(const void* on);
  void wake_one(const void* on);

  TimePoint now() const { return time_.now(); }
  void after(Duration delay, std::function<void()> what) { time_.after(delay, std::move(what)); }
  Descriptors& descriptors() { return descriptors_; }
  /// Threads of `process` that became due while it was paused, or was over, go on.
  void continue_threads(const Process& process);
  bool all_ended(const Process& process) const;
  /// Whether the threads of all processes have ended.
  bool all_ended() const { return live_ == 0; }
  /// Describes what the threads of `process` that have not ended wait for.
  std::string describe(const Process& process) const;

  std::uint64_t switches() const { return switches_; }

 private:
  friend class Thread;

  void resume_at(Thread& thread, TimePoint when);
  void run(Thread& thread);
  void suspend();
  void stall(Duration length);
  void count_call();
  std::uint64_t draw(std::uint64_t bound);
  std::vector<Thread*>& waiting_on(const void* on);

  VirtualTime& time_;
  std::uint64_t bits_;  // of a generator of its own, which is asked very often
  unsigned interrupts_per_mille_;
  Descriptors descriptors_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* current_ = nullptr;
  std::array<std::vector<Thread*>, 1024> waiting_;  // in the order of their starts
  std::uint64_t live_ = 0;                          // threads that have not ended
  std::uint64_t switches_ = 0;
  int undisturbed_ = 0;
};

}  // namespace elastic::simulation
