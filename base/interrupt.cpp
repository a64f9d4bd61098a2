#include "base/interrupt.hpp"

#include <utility>

#include "base/in_callback.hpp"
#include "elastic/interrupt.hpp"

namespace elastic {

namespace {

thread_local const std::function<void()>* innermost = nullptr;

}  // namespace

InterruptCheck::InterruptCheck(std::function<void()> check)
    : check_(std::move(check)), outer_(std::exchange(innermost, &check_)) {}

InterruptCheck::~InterruptCheck() {
  innermost = outer_;
}

bool has_interrupt_check() noexcept {
  return innermost != nullptr;
}

void check_interrupt() {
  if (innermost == nullptr || !*innermost) return;
  const InCallback in("an InterruptCheck");
  (*innermost)();
}

}  // namespace elastic
