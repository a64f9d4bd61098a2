#include "runtime/raise.hpp"

#include "base/public_code.hpp"

namespace elastic::runtime {

void raise(const Status& failure) {
  switch (failure.code()) {
    case Code::kRemoved:
      throw MustLeave(ErrorCode::kRemoved, failure.message(), RunOutcome::kRemoved);
    case Code::kStopped:
      throw MustLeave(ErrorCode::kStopped, failure.message(), RunOutcome::kStopped);
    case Code::kDone:
      throw MustLeave(ErrorCode::kNotInitialized, failure.message(), RunOutcome::kLeftOut);
    default:
      throw Error(public_code(failure.code()), failure.message(), failure.peer(),
                  failure.generation());
  }
}

}  // namespace elastic::runtime
