#include "threads.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "collectives/transport/spin_backoff.hpp"
#include "oracle.hpp"
#include "process.hpp"

namespace elastic::simulation {

namespace {

thread_local Threads* active_threads = nullptr;

using std::chrono::microseconds;

/// With more threads than this, which share few cores, a thread that yields waits for long.
constexpr std::uint64_t kCrowd = 60;

/// A thread that makes so many calls without waiting for anything is in a busy loop.
constexpr std::uint64_t kMostCallsWithoutWaiting = 1'000'000;
/// The busy thread then sleeps, so that the event that ends its loop can happen.
constexpr std::chrono::seconds kRestOfBusyThread{10};

/// A thread that spins learns nothing here: nothing moves before it yields.
void spin_little() {
  using transport::SpinBackoff;
  [[maybe_unused]] static const int spins = SpinBackoff::most_spins = SpinBackoff::kLeastSpins;
}

}  // namespace

Thread::Thread(Threads& threads, Process& process, std::size_t number, std::string name,
               std::function<void()> body)
    : threads_(threads),
      process_(process),
      number_(number),
      name_(std::move(name)),
      fiber_([this, body = std::move(body)]() mutable {
        try {
          body();
        } catch (const std::exception& error) {
          failure_ = error.what();
        }
        body = nullptr;
        --threads_.live_;
        threads_.wake_all(this);
      }) {}

std::string Thread::describe() const {
  std::string text = name_;
  if (!failure_.empty()) text += " died of " + failure_;
  if (ended()) return text + " has ended";
  return text + (state_ == State::kBlocked ? std::string(" waits: ") + how_ : " can run");
}

Threads::Threads(VirtualTime& time, Chance& chance) : time_(time), bits_(chance.below(~0ULL) | 1U) {
  spin_little();
  // Some runs with few interrupts, some with many.
  static constexpr unsigned kShares[] = {0, 5, 30, 150};
  interrupts_per_mille_ = kShares[chance.below(4)];
}

Threads::~Threads() {
  set_active(false);
}

void Threads::set_active(bool active) {
  active_threads = active ? this : nullptr;
}

Threads* Threads::active() {
  return active_threads;
}

/// xorshift64*
std::uint64_t Threads::draw(std::uint64_t bound) {
  bits_ ^= bits_ >> 12U;
  bits_ ^= bits_ << 25U;
  bits_ ^= bits_ >> 27U;
  return ((bits_ * 0x2545F4914F6CDD1DULL) >> 32U) % bound;
}

Thread& Threads::start(Process& process, std::string name, std::function<void()> body) {
  ++live_;
  Thread& thread = *threads_.emplace_back(
      std::make_unique<Thread>(*this, process, threads_.size(), std::move(name), std::move(body)));
  resume_at(thread, time_.now() + microseconds(draw(100)));
  return thread;
}

bool Threads::knows(const Thread* thread) const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [&](const auto& each) { return each.get() == thread; });
}

void Threads::resume_at(Thread& thread, TimePoint when) {
  thread.state_ = Thread::State::kRunnable;
  ++thread.turn_;
  time_.at(when, [&thread, turn = thread.turn_] {
    if (turn == thread.turn_) thread.threads_.run(thread);
  });
}

/// The thread stays runnable while its process is paused or over.
void Threads::run(Thread& thread) {
  if (thread.state_ != Thread::State::kRunnable || !thread.process_.runs()) return;
  thread.state_ = Thread::State::kRunning;
  ++switches_;
  Thread* const before = std::exchange(current_, &thread);
  thread.fiber_.resume();
  current_ = before;
}

void Threads::suspend() {
  current_->fiber_.suspend();
}

bool Threads::block(const void* on, const char* how, TimePoint deadline) {
  Thread& thread = *current_;
  thread.calls_without_waiting_ = 0;
  thread.state_ = Thread::State::kBlocked;
  thread.waits_for_ = on;
  thread.how_ = how;
  thread.woken_ = false;
  ++thread.turn_;
  if (deadline != TimePoint::max()) {
    time_.at(deadline, [&thread, turn = thread.turn_] {
      if (turn == thread.turn_) thread.threads_.resume_at(thread, thread.threads_.time_.now());
    });
  }
  std::vector<Thread*>& waiting = waiting_on(on);
  waiting.insert(std::ranges::upper_bound(waiting, thread.number_, {}, &Thread::number_), &thread);
  suspend();
  std::erase(waiting, &thread);
  thread.waits_for_ = nullptr;
  return thread.woken_;
}

void Threads::sleep(Duration length) {
  current_->calls_without_waiting_ = 0;
  stall(length);
}

/// For the current thread this takes no time.
void Threads::stall(Duration length) {
  resume_at(*current_, time_.now() + length);
  suspend();
}

/// Virtual time moves between turns alone: a thread that loops within one would never end.
void Threads::count_call() {
  Thread& thread = *current_;
  if (++thread.calls_without_waiting_ < kMostCallsWithoutWaiting) return;
  thread.process_.context().oracle.wrong(thread.process_.incarnation() + ": its thread \"" +
                                         thread.name_ + "\" is in a busy loop");
  sleep(kRestOfBusyThread);
}

void Threads::join(const Thread& thread) {
  while (!thread.ended()) block(&thread, "for the end of a thread");
}

void Threads::interrupt() {
  if (undisturbed()) return;
  count_call();
  if (draw(1000) >= interrupts_per_mille_) return;
  stall(microseconds(draw(10) == 0 ? draw(2000) : draw(60)));
}

/// Now and then another program has the core for long. The thread that waits then does not yield
/// again for a while (SpinBackoff), which saves most of the cost of a simulated wait.
void Threads::yield() {
  const bool crowded = live_ > kCrowd;
  sleep(crowded || draw(3) == 0 ? microseconds(1000 + draw(500)) : microseconds(1 + draw(30)));
}

TimePoint Threads::look_at_clock() {
  if (undisturbed()) return time_.now();
  count_call();
  if (draw(16) == 0) stall(microseconds(draw(300)));
  return time_.now();
}

void Threads::wake(Thread& thread) {
  if (thread.state_ != Thread::State::kBlocked || thread.ended()) return;
  thread.woken_ = true;
  const bool late = draw(8) == 0;
  resume_at(thread, time_.now() + microseconds(late ? draw(800) : draw(20)));
}

/// Those that wait for this, or for something that falls into the same place: few of all threads.
std::vector<Thread*>& Threads::waiting_on(const void* on) {
  const auto address = reinterpret_cast<std::uintptr_t>(on);
  return waiting_[(address >> 4U) % waiting_.size()];
}

void Threads::wake_all(const void* on) {
  for (Thread* const thread : waiting_on(on)) {
    if (thread->waits_for_ == on) wake(*thread);
  }
}

void Threads::wake_one(const void* on) {
  std::vector<Thread*> waiting;
  for (Thread* const thread : waiting_on(on)) {
    if (thread->waits_for_ == on && thread->state_ == Thread::State::kBlocked) {
      waiting.push_back(thread);
    }
  }
  if (!waiting.empty()) wake(*waiting[draw(waiting.size())]);
}

void Threads::continue_threads(const Process& process) {
  for (const auto& thread : threads_) {
    if (&thread->process_ != &process || thread->ended() ||
        thread->state_ != Thread::State::kRunnable)
      continue;
    resume_at(*thread, time_.now() + microseconds(draw(100)));
  }
}

bool Threads::all_ended(const Process& process) const {
  return std::all_of(threads_.begin(), threads_.end(), [&](const auto& thread) {
    return &thread->process_ != &process || thread->ended();
  });
}

std::string Threads::describe(const Process& process) const {
  std::string text;
  for (const auto& thread : threads_) {
    if (&thread->process_ != &process || thread->ended()) continue;
    text += (text.empty() ? "" : "; ") + thread->describe();
  }
  return text;
}

}  // namespace elastic::simulation
