#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "elastic/detail/export.hpp"

namespace elastic {

/// The kind of an error, for programs. `Error::what()` is the message for people, with the remedy.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  ///< A call, option or environment variable is wrong. Nothing was done,
                     ///< unless the function says otherwise.
  kMismatch,        ///< Ranks called different things, or an object of their states stays different
                    ///< whatever it loads. The same error is raised on every rank.
  kNotInitialized,  ///< `init` has not been called, or `shutdown` has; or this process is a forked
                    ///< child of the worker that called it.
  kUnavailable,     ///< The rendezvous server cannot be reached, or a resource is missing.
  kRefused,       ///< The job refused this worker: wrong secret, version, state or options. Or the
                  ///< first members' states or options differ: on each of them, and the job fails.
  kTimeout,       ///< A bounded wait ended.
  kRootLost,      ///< A call's root died before the members could complete it. Retryable.
  kBelowMinimum,  ///< The job cannot go on, mostly because fewer than `min_np` workers are left;
                  ///< the message has the reason.
  kEvicted,       ///< The job went on without this worker.
  kRemoved,    ///< This worker was asked to leave. `run` catches it and returns; outside of `run`
               ///< collectives throw it.
  kStopped,    ///< The job was asked to stop. `run` catches it and returns RunOutcome::kStopped;
               ///< outside of `run` collectives throw it.
  kNotFinite,  ///< A gradient had NaN or Inf, and Options::non_finite says "error".
  kInternal,   ///< A defect of the library, or this worker has left the job after an exception or
               ///< for lack of memory.
};

/// The library's exception.
class ELASTIC_API Error : public std::runtime_error {
 public:
  /// For the library. The functions of the same names below explain `peer` and `generation`.
  Error(ErrorCode code, const std::string& message, int peer = -1, std::uint64_t generation = 0);
  ~Error() override;

  /// \returns the kind of the error.
  ErrorCode code() const noexcept { return code_; }
  /// \returns the rank of the worker that it concerns, or -1.
  int peer() const noexcept { return peer_; }
  /// \returns the generation of the view that is in force after the error, or 0 if none applies.
  std::uint64_t generation() const noexcept { return generation_; }
  /// \returns whether calling again in the present view can succeed.
  bool retryable() const noexcept { return code_ == ErrorCode::kRootLost; }

 private:
  ErrorCode code_;
  int peer_;
  std::uint64_t generation_;
};

}  // namespace elastic
