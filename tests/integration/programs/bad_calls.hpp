#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "integration/programs/check_program.hpp"

/// The wrong calls of the program bad_calls, by mode.
namespace elastic::bad_calls {

using testing::fail;

/// `call` must fail with `code`, and its message, which is printed, must have all of `words` in it.
inline void must_fail(const std::string& what, ErrorCode code,
                      const std::vector<std::string>& words, const std::function<void()>& call) {
  std::printf("%s: %s\n", what.c_str(), testing::must_fail(what, code, words, call).c_str());
}

/// The job goes on: a correct call has the correct result.
inline void must_go_on() {
  std::vector<int> ones(100, 1);
  const Contributors contributors = elastic::allreduce(std::span<int>(ones));
  if (ones[99] != elastic::size() || static_cast<int>(contributors.size()) != elastic::size()) {
    fail("a correct call after a wrong one has a wrong result");
  }
}

void different_calls();
void different_tensors();
/// Rank 1 leaves `run` by an exception and calls it again while the others are inside. All are told
/// so, and all go on when they have called it again, too.
void call_run_again();
/// This rank ends at once. On the others, too, the call has no other result than the error.
[[noreturn]] void end_with_the_error(bool named);

void calls_in_callbacks();
/// The others have the result of that call, and then go on without rank 1, which lives.
void exception_on_one_rank();

void wrong_by_itself();
/// Checks the errors of calls before init and after shutdown.
void not_initialized(const std::string& when);

}  // namespace elastic::bad_calls
