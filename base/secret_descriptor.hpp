#pragma once

#include "base/secret.hpp"
#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

/// An anonymous, sealed file with the secret, for `read_secret_fd` or `read_secret_file` in another
/// process. Closed in children that execute a program, unless that is changed.
Result<UniqueFd> secret_descriptor(const Secret& secret);

/// The secret from an inherited descriptor, which is one of two kinds:
/// - from `secret_descriptor`: it is closed once it is read, so that children do not have it;
/// - any other regular file: it stays open, but programs that this process executes do not get it.
///
/// A process keeps the secret that it has read, and returns it in later calls with the same number,
/// whatever file has the number by then. A descriptor of another kind is neither read nor closed:
/// kInvalidArgument says what it is. Any thread.
Result<Secret> read_secret_fd(int fd);

}  // namespace elastic
