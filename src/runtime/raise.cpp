#include "runtime/raise.hpp"

namespace elastic::runtime {

namespace {

ErrorCode public_code(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return ErrorCode::kInvalidArgument;
    case Code::kMismatch:
    case Code::kPoisoned:
      return ErrorCode::kMismatch;
    case Code::kTimeout:
      return ErrorCode::kTimeout;
    case Code::kUnavailable:
    case Code::kPeerLost:
    case Code::kDamaged:
      return ErrorCode::kUnavailable;
    case Code::kRefused:
    case Code::kProtocol:
      return ErrorCode::kRefused;
    case Code::kRootLost:
      return ErrorCode::kRootLost;
    case Code::kBelowMinimum:
      return ErrorCode::kBelowMinimum;
    case Code::kEvicted:
      return ErrorCode::kEvicted;
    case Code::kRemoved:
      return ErrorCode::kRemoved;
    case Code::kStopped:
      return ErrorCode::kStopped;
    case Code::kDone:
    case Code::kNotInitialized:
      return ErrorCode::kNotInitialized;
    case Code::kOk:
    case Code::kAborted:
    case Code::kInternal:
      break;
  }
  return ErrorCode::kInternal;
}

}  // namespace

void raise(const Status& failure) {
  switch (failure.code()) {
    case Code::kRemoved:
      throw Departure(ErrorCode::kRemoved, failure.message(), RunOutcome::kRemoved);
    case Code::kStopped:
      throw Departure(ErrorCode::kStopped, failure.message(), RunOutcome::kStopped);
    case Code::kDone:
      throw Departure(ErrorCode::kNotInitialized, failure.message(), RunOutcome::kFinished);
    default:
      throw Error(public_code(failure.code()), failure.message(), failure.peer(),
                  failure.generation());
  }
}

}  // namespace elastic::runtime
