#pragma once

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::launcher {

/// The way of a process's output to the launcher, or of its input. Both ends close on exec.
struct OutputChannel {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<OutputChannel> make_pipe();

/// A pseudo-terminal: the C library writes to it line by line, so that the lines of a process that
/// is killed are all here. Raw: bytes arrive as they were written. It is no process's controlling
/// terminal, so that its end sends no signals. At the end of the stream `read` fails with EIO.
Result<OutputChannel> make_terminal();

}  // namespace elastic::launcher
