#pragma once

#include <cstdint>

namespace elastic {

/// A number that distinguishes a process from its forked children: a child of fork(2) has another
/// number from its first instruction on. Objects that a child must not use or destroy remember it.
/// Costs a load from memory, no system call. Any thread; async-signal-safe after the first call.
std::uint64_t process_mark() noexcept;

/// Registers `fd`, a socket of the library. A child of fork(2) closes its copy before fork returns,
/// so that a peer notices the parent's death at once even if the child lives. The connection itself
/// is not affected, nor is another file that has the number by then. SOCK_CLOEXEC does the same in
/// children that execute a program.
void close_in_children(int fd) noexcept;

}  // namespace elastic
