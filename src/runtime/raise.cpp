#include "runtime/raise.hpp"

#include <string_view>

#include "base/public_code.hpp"

namespace elastic::runtime {

std::string text_of(const Error& error) {
  constexpr std::string_view kLibrary = "elastic: ";
  const std::string_view text = error.what();
  return std::string(text.starts_with(kLibrary) ? text.substr(kLibrary.size()) : text);
}

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
