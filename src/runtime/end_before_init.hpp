#pragma once

#include "elastic/results.hpp"

namespace elastic::runtime {

/// Why `init` ends the process of a worker that the job let go before it returned, for people.
constexpr const char* end_before_init(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::kRemoved:
      return "this worker was asked to leave before its elastic::init returned; the worker ends";
    case RunOutcome::kStopped:
      return "the job was stopped before this worker joined it; the worker ends";
    default:
      return "the job was done before this worker joined it; the worker ends";
  }
}

}  // namespace elastic::runtime
