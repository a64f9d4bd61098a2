#include "collectives/transport/ring/doorbell.hpp"

#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace elastic::transport {
namespace {

/// Makes what was published before visible before what is read after. ThreadSanitizer does not know
/// fences, so there it is an operation on the flag itself.
std::uint32_t load_after_fence(std::atomic<std::uint32_t>& flag) {
#if defined(__SANITIZE_THREAD__)
  return flag.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return flag.load(std::memory_order_relaxed);
#endif
}

}  // namespace

void Doorbell::ring_if(std::atomic<std::uint32_t>& sleeps) {
  if (load_after_fence(sleeps) == 0) return;
  if (sleeps.exchange(0, std::memory_order_acq_rel) == 0) return;
  const char bell = 1;
  // A full socket has unread bells in it: the peer is awake anyway. A broken one is noticed in
  // `silence`.
  [[maybe_unused]] const auto sent = ::send(socket_.get(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool Doorbell::silence() {
  std::array<char, 64> bells;
  const ssize_t got = ::recv(socket_.get(), bells.data(), bells.size(), MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace elastic::transport
