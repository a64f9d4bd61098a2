#include "interpreter_lock.hpp"

#include <atomic>
#include <pthread.h>
#include <unistd.h>

namespace elastic::python {

namespace {

namespace nb = nanobind;

std::atomic<bool> ending{false};
/// Threads that ask for the lock.
std::atomic<int> asking{0};
/// Whether this thread ends the interpreter. It may call the library meanwhile.
thread_local bool ends_it = false;

/// This thread asks for the lock for as long as this lives.
class Asking {
 public:
  Asking() noexcept {
    ++asking;
    if (!ending || ends_it) return;
    --asking;
    sleep_until_exit();
  }
  ~Asking() { --asking; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
};

/// Called with the lock, before Python takes it from all other threads: those that have asked for
/// it receive it now.
void on_interpreter_end() {
  ends_it = true;
  ending = true;
  const nb::gil_scoped_release released;
  while (asking != 0) ::usleep(1000);
}

}  // namespace

ReleasedLock::~ReleasedLock() {
  const Asking asks;
  PyEval_RestoreThread(state_);
}

HeldLock::HeldLock() {
  const Asking asks;
  state_ = PyGILState_Ensure();
}

OfferedLock::OfferedLock() {
  ++asking;
  held_ = !ending || ends_it;
  if (held_) state_ = PyGILState_Ensure();
  --asking;
}

void sleep_until_exit() noexcept {
  for (;;) ::pause();
}

void watch_for_interpreter_end() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&on_interpreter_end));
  // A forked child has none of the parent's other threads.
  ::pthread_atfork(nullptr, nullptr, [] { asking = 0; });
}

}  // namespace elastic::python
