#include "base/public_code.hpp"

namespace elastic {

ErrorCode public_code(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
      return ErrorCode::kInvalidArgument;
    case Code::kMismatch:
    case Code::kOperationAborted:
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

}  // namespace elastic
