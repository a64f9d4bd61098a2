// The functions of the C library by which the product's code waits, tells the time and makes
// threads, defined here in place of the library's: what a simulated thread calls goes to the
// scheduler of its run, everything else to the library. The product is the same object code as
// everywhere.
//
// A mutex stays the library's, because some are shared with other real threads (such as those of
// the unwinder): a simulated thread tries it, and waits in the scheduler where another simulated
// thread of the same real thread has it.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <iterator>
#include <memory>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "descriptors.hpp"
#include "threads.hpp"

// Declared by the C library with attributes that say what it promises of its own.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wnonnull-compare"
#endif

namespace elastic::simulation {
namespace {

template <typename Function>
Function library(const char* name, const char* version = nullptr) {
  // Conditions have an older version with another size.
  void* found = version != nullptr ? ::dlvsym(RTLD_NEXT, name, version) : nullptr;
  if (found == nullptr) found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "the simulator does not find %s in the C library\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

/// The library's function of this name, looked up once.
#define ELASTIC_LIBRARY(name, ...)                                                             \
  []() {                                                                                       \
    static const auto function = library<decltype(&::name)>(#name __VA_OPT__(, ) __VA_ARGS__); \
    return function;                                                                           \
  }()

constexpr const char* kConditions = "GLIBC_2.3.2";

Threads* simulated() {
  return Threads::active();
}
Thread* current() {
  Threads* const threads = simulated();
  return threads == nullptr ? nullptr : threads->current();
}
std::shared_ptr<Descriptor> descriptor(int number) {
  Threads* const threads = simulated();
  return threads == nullptr || !Descriptors::is_one(number) ? nullptr
                                                            : threads->descriptors().find(number);
}

/// The mutexes that simulated threads of this real thread hold.
thread_local std::vector<pthread_mutex_t*> held;

bool is_held(const pthread_mutex_t* mutex) {
  return std::find(held.begin(), held.end(), mutex) != held.end();
}
void release(const pthread_mutex_t* mutex) {
  const auto last = std::find(held.rbegin(), held.rend(), mutex);
  if (last != held.rend()) held.erase(std::next(last).base());
}

/// Mutexes that interrupted threads hold, and an event takes: no thread runs during an event, and
/// events only look at what threads own.
thread_local std::vector<pthread_mutex_t*> observed;

int lock(pthread_mutex_t* mutex) {
  Threads& threads = *simulated();
  for (;;) {
    int result = ELASTIC_LIBRARY(pthread_mutex_trylock)(mutex);
    if (result != 0 && !is_held(mutex)) result = ELASTIC_LIBRARY(pthread_mutex_lock)(mutex);
    if (result == 0) {
      held.push_back(mutex);
      return 0;
    }
    if (threads.undisturbed()) {
      observed.push_back(mutex);
      return 0;
    }
    threads.block(mutex, "for a mutex");
  }
}

int unlock(pthread_mutex_t* mutex) {
  if (!observed.empty() && observed.back() == mutex) {
    observed.pop_back();
    return 0;
  }
  release(mutex);
  const int result = ELASTIC_LIBRARY(pthread_mutex_unlock)(mutex);
  simulated()->wake_one(mutex);
  return result;
}

/// `until` is in time of the condition's clock; the simulated clock is monotonic.
int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  const TimePoint deadline = until == nullptr ? TimePoint::max()
                                              : TimePoint(std::chrono::seconds(until->tv_sec) +
                                                          std::chrono::nanoseconds(until->tv_nsec));
  unlock(mutex);
  const bool woken = simulated()->block(condition, "for a condition", deadline);
  lock(mutex);
  return woken ? 0 : ETIMEDOUT;
}

Duration duration_of(const timespec& length) {
  return std::chrono::seconds(length.tv_sec) + std::chrono::nanoseconds(length.tv_nsec);
}

}  // namespace
}  // namespace elastic::simulation

using namespace elastic::simulation;
#define ELASTIC_INTERPOSED extern "C" __attribute__((visibility("default")))

// Mutexes and conditions.

ELASTIC_INTERPOSED int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (current() != nullptr) simulated()->interrupt();
  return simulated() == nullptr ? ELASTIC_LIBRARY(pthread_mutex_lock)(mutex) : lock(mutex);
}
ELASTIC_INTERPOSED int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  const int result = ELASTIC_LIBRARY(pthread_mutex_trylock)(mutex);
  if (result == 0 && simulated() != nullptr) held.push_back(mutex);
  return result;
}
ELASTIC_INTERPOSED int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (simulated() == nullptr) return ELASTIC_LIBRARY(pthread_mutex_unlock)(mutex);
  const int result = unlock(mutex);
  if (current() != nullptr) simulated()->interrupt();
  return result;
}
ELASTIC_INTERPOSED int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return current() == nullptr ? ELASTIC_LIBRARY(pthread_cond_wait, kConditions)(condition, mutex)
                              : wait(condition, mutex, nullptr);
}
ELASTIC_INTERPOSED int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                              const timespec* until) {
  return current() == nullptr
             ? ELASTIC_LIBRARY(pthread_cond_timedwait, kConditions)(condition, mutex, until)
             : wait(condition, mutex, until);
}
ELASTIC_INTERPOSED int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                              clockid_t clock, const timespec* until) {
  return current() == nullptr
             ? ELASTIC_LIBRARY(pthread_cond_clockwait)(condition, mutex, clock, until)
             : wait(condition, mutex, until);
}
ELASTIC_INTERPOSED int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (simulated() == nullptr) return ELASTIC_LIBRARY(pthread_cond_signal, kConditions)(condition);
  simulated()->wake_one(condition);
  return 0;
}
ELASTIC_INTERPOSED int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (simulated() == nullptr) {
    return ELASTIC_LIBRARY(pthread_cond_broadcast, kConditions)(condition);
  }
  simulated()->wake_all(condition);
  return 0;
}

// Threads.

ELASTIC_INTERPOSED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                      void* (*body)(void*), void* argument) noexcept {
  Thread* const creator = current();
  if (creator == nullptr) {
    return ELASTIC_LIBRARY(pthread_create)(thread, attributes, body, argument);
  }
  Thread& made =
      simulated()->start(creator->process(), "thread", [body, argument] { body(argument); });
  *thread = reinterpret_cast<pthread_t>(&made);
  return 0;
}
ELASTIC_INTERPOSED int pthread_join(pthread_t thread, void** result) {
  auto* const one = reinterpret_cast<Thread*>(thread);
  if (current() == nullptr || !simulated()->knows(one)) {
    return ELASTIC_LIBRARY(pthread_join)(thread, result);
  }
  simulated()->join(*one);
  return 0;
}
ELASTIC_INTERPOSED pthread_t pthread_self() noexcept {
  Thread* const thread = current();
  return thread == nullptr ? ELASTIC_LIBRARY(pthread_self)() : reinterpret_cast<pthread_t>(thread);
}
ELASTIC_INTERPOSED int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (current() == nullptr) return ELASTIC_LIBRARY(pthread_setname_np)(thread, name);
  current()->set_name(name);
  return 0;
}

// Time.

ELASTIC_INTERPOSED int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (simulated() == nullptr || clock != CLOCK_MONOTONIC) {
    return ELASTIC_LIBRARY(clock_gettime)(clock, now);
  }
  const auto since = std::chrono::nanoseconds(simulated()->look_at_clock().time_since_epoch());
  now->tv_sec = static_cast<std::time_t>(since.count() / 1'000'000'000);
  now->tv_nsec = static_cast<long>(since.count() % 1'000'000'000);
  return 0;
}
ELASTIC_INTERPOSED int sched_yield() noexcept {
  if (current() == nullptr) return ELASTIC_LIBRARY(sched_yield)();
  simulated()->yield();
  return 0;
}
ELASTIC_INTERPOSED int nanosleep(const timespec* length, timespec* left) {
  if (current() == nullptr) return ELASTIC_LIBRARY(nanosleep)(length, left);
  simulated()->sleep(duration_of(*length));
  return 0;
}

// Descriptors.

ELASTIC_INTERPOSED int eventfd(unsigned int count, int flags) noexcept {
  if (simulated() == nullptr) return ELASTIC_LIBRARY(eventfd)(count, flags);
  return simulated()->descriptors().open(std::make_shared<EventDescriptor>());
}
ELASTIC_INTERPOSED int timerfd_create(clockid_t clock, int flags) noexcept {
  if (simulated() == nullptr) return ELASTIC_LIBRARY(timerfd_create)(clock, flags);
  return simulated()->descriptors().open(std::make_shared<TimerDescriptor>());
}
ELASTIC_INTERPOSED int timerfd_settime(int number, int flags, const itimerspec* value,
                                       itimerspec* old) noexcept {
  const auto timer = std::dynamic_pointer_cast<TimerDescriptor>(descriptor(number));
  if (!timer) return ELASTIC_LIBRARY(timerfd_settime)(number, flags, value, old);
  timer->arm(duration_of(value->it_value));
  return 0;
}
ELASTIC_INTERPOSED int epoll_create1(int flags) noexcept {
  if (simulated() == nullptr) return ELASTIC_LIBRARY(epoll_create1)(flags);
  return simulated()->descriptors().open(std::make_shared<EpollDescriptor>());
}
ELASTIC_INTERPOSED int epoll_ctl(int number, int what, int member, epoll_event* event) noexcept {
  const auto set = std::dynamic_pointer_cast<EpollDescriptor>(descriptor(number));
  if (!set) return ELASTIC_LIBRARY(epoll_ctl)(number, what, member, event);
  const auto its = descriptor(member);
  if (what != EPOLL_CTL_ADD || !its) std::abort();
  set->add(its);
  return 0;
}
ELASTIC_INTERPOSED int poll(pollfd* watched, nfds_t count, int timeout) {
  bool any = false;
  for (nfds_t i = 0; i < count; ++i) any = any || Descriptors::is_one(watched[i].fd);
  if (!any || simulated() == nullptr) return ELASTIC_LIBRARY(poll)(watched, count, timeout);
  return simulated()->descriptors().poll(watched, count, timeout);
}
ELASTIC_INTERPOSED ssize_t read(int number, void* into, std::size_t bytes) {
  const auto its = descriptor(number);
  return its ? its->read(into, bytes) : ELASTIC_LIBRARY(read)(number, into, bytes);
}
ELASTIC_INTERPOSED ssize_t write(int number, const void* from, std::size_t bytes) {
  const auto its = descriptor(number);
  return its ? its->write(from, bytes) : ELASTIC_LIBRARY(write)(number, from, bytes);
}
ELASTIC_INTERPOSED int shutdown(int number, int how) noexcept {
  const auto its = descriptor(number);
  return its ? its->shut_down() : ELASTIC_LIBRARY(shutdown)(number, how);
}
ELASTIC_INTERPOSED int close(int number) {
  if (!Descriptors::is_one(number)) return ELASTIC_LIBRARY(close)(number);
  if (simulated() != nullptr) simulated()->descriptors().close(number);
  return 0;
}
