#pragma once

namespace elastic {

/// The error of a forked child that uses the library of its parent, a worker.
inline constexpr const char* kForkedChild =
    "this process is a forked child of a worker, and not the worker itself: a child may compute, "
    "exit or execute a program, but only the worker can call elastic";

}  // namespace elastic
