#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace elastic {

/// Failures inside the library. The caller gets an elastic::Error made from one.
enum class Code : std::uint8_t {
  kOk,
  kInvalidArgument,
  kMismatch,  ///< The ranks made different calls: the caller's mistake, never a view change.
  kOperationAborted,  ///< Another rank found a mismatch in this operation.
  kPeerLost,          ///< A link broke. `peer` says which.
  kAborted,           ///< The view is being changed.
  kTimeout,
  kUnavailable,
  kRefused,
  kProtocol,  ///< The other side sent what the protocol does not allow.
  kDamaged,   ///< The received data is not what the other side sent.
  kRootLost,
  kBelowMinimum,
  kEvicted,
  kRemoved,  ///< This worker was asked to leave.
  kStopped,  ///< The job was asked to stop.
  kDone,     ///< The job has reached its end.
  kNotInitialized,
  kInternal,
};

const char* name(Code code) noexcept;

/// Outcome of something that can fail. Success costs one null pointer.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  /// Control characters in `message` are escaped: see printable.
  explicit Status(Code code, const std::string& message, int peer = -1,
                  std::uint64_t generation = 0);

  bool ok() const noexcept { return !failure_; }
  Code code() const noexcept { return failure_ ? failure_->code : Code::kOk; }
  const std::string& message() const noexcept;
  int peer() const noexcept { return failure_ ? failure_->peer : -1; }
  std::uint64_t generation() const noexcept { return failure_ ? failure_->generation : 0; }

  /// The same failure with `context` in front of its message.
  Status within(const std::string& context) const;

 private:
  struct Failure {
    Code code;
    std::string message;
    int peer;
    std::uint64_t generation;
  };
  std::shared_ptr<const Failure> failure_;
};

/// A value, or the failure because of which there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : outcome_(std::in_place_index<0>, std::move(value)) {}         // NOLINT
  Result(Status status) : outcome_(std::in_place_index<1>, std::move(status)) {}  // NOLINT

  bool ok() const noexcept { return outcome_.index() == 0; }
  T& value() & { return std::get<0>(outcome_); }
  const T& value() const& { return std::get<0>(outcome_); }
  T&& value() && { return std::get<0>(std::move(outcome_)); }
  Status status() const { return ok() ? Status() : std::get<1>(outcome_); }

 private:
  std::variant<T, Status> outcome_;
};

}  // namespace elastic
