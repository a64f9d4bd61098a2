#include "base/status.hpp"

#include "base/printable.hpp"

namespace elastic {

const char* name(Code code) noexcept {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kMismatch:
      return "mismatch";
    case Code::kOperationAborted:
      return "operation aborted";
    case Code::kPeerLost:
      return "peer lost";
    case Code::kAborted:
      return "aborted";
    case Code::kTimeout:
      return "timeout";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kRefused:
      return "refused";
    case Code::kProtocol:
      return "protocol error";
    case Code::kDamaged:
      return "damaged";
    case Code::kRootLost:
      return "root lost";
    case Code::kBelowMinimum:
      return "below minimum";
    case Code::kEvicted:
      return "evicted";
    case Code::kRemoved:
      return "removed";
    case Code::kStopped:
      return "stopped";
    case Code::kDone:
      return "done";
    case Code::kNotInitialized:
      return "not initialized";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status::Status(Code code, const std::string& message, int peer, std::uint64_t generation)
    : failure_(
          std::make_shared<const Failure>(Failure{code, printable(message), peer, generation})) {}

const std::string& Status::message() const noexcept {
  static const std::string kEmpty;
  return failure_ ? failure_->message : kEmpty;
}

Status Status::within(const std::string& context) const {
  if (ok()) return *this;
  return Status(failure_->code, context + ": " + failure_->message, failure_->peer,
                failure_->generation);
}

}  // namespace elastic
