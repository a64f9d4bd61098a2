#pragma once

#include <cstdint>

namespace elastic {

/// A number that no other process of a family of forks has: a child of fork(2) has another one than
/// its parent, from its first instruction. Objects that a child must not use or destroy remember
/// it. Costs a load from memory, no system call. Any thread; async-signal-safe after the first
/// call.
std::uint64_t process_mark() noexcept;

/// Says that `fd` is a socket of the library. A child of fork(2) closes its copy before fork
/// returns, so that a peer hears of the parent's death at once, though the child lives. Without
/// effect on the connection, and where the number has become another file's. For a child that
/// executes a program SOCK_CLOEXEC does it.
void close_in_children(int fd) noexcept;

}  // namespace elastic
