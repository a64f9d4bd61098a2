// The checked longjmp takes another stack for a frame that is gone.
#undef _FORTIFY_SOURCE
#include "fiber.hpp"

#include <cstdint>
#include <cstdlib>
#include <cxxabi.h>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace elastic::simulation {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStackBytes = 128 * 1024;

}  // namespace

class Fiber::Stack {
 public:
  Stack() : memory_(take()) {}
  ~Stack() { pool().free.push_back(memory_); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* bottom() const { return static_cast<char*>(memory_) + kPage; }
  static constexpr std::size_t bytes() { return kStackBytes; }

 private:
  struct Pool {
    std::vector<void*> free;
    ~Pool() {
      for (void* const memory : free) ::munmap(memory, kPage + kStackBytes);
    }
  };
  static Pool& pool() {
    static thread_local Pool pool;
    return pool;
  }
  static void* take() {
    std::vector<void*>& free = pool().free;
    if (!free.empty()) {
      void* const memory = free.back();
      free.pop_back();
      return memory;
    }
    void* const memory = ::mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || ::mprotect(memory, kPage, PROT_NONE) != 0) throw std::bad_alloc();
    return memory;
  }

  void* const memory_;
};

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(std::make_unique<Stack>()) {}
Fiber::~Fiber() = default;

void Fiber::resume() {
  auto* const handled = reinterpret_cast<Handled*>(abi::__cxa_get_globals());
  const Handled mine = std::exchange(*handled, handled_);
  go_on();
  auto* const now = reinterpret_cast<Handled*>(abi::__cxa_get_globals());
  handled_ = std::exchange(*now, mine);
}

/// No variable of this function is used after the jump back, which could spoil it.
void Fiber::go_on() {
  if (_setjmp(resumer_) != 0) return;
  if (begun_) _longjmp(here_, 1);
  begun_ = true;
  ::getcontext(&first_);
  first_.uc_stack.ss_sp = stack_->bottom();
  first_.uc_stack.ss_size = Stack::bytes();
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&first_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<unsigned int>(self), static_cast<unsigned int>(self >> 32U));
  ::setcontext(&first_);
}

void Fiber::leave_to_resumer() {
  if (_setjmp(here_) == 0) _longjmp(resumer_, 1);
}

void Fiber::run() {
  body_();
  ended_ = true;
  leave_to_resumer();
  std::abort();
}

void Fiber::suspend() {
  leave_to_resumer();
}

void Fiber::enter(unsigned int low, unsigned int high) {
  const auto self = static_cast<std::uintptr_t>(low) | static_cast<std::uintptr_t>(high) << 32U;
  reinterpret_cast<Fiber*>(self)->run();
}

}  // namespace elastic::simulation
