#include "elastic/error.hpp"

#include "base/printable.hpp"

namespace elastic {

Error::Error(ErrorCode code, const std::string& message, int peer, std::uint64_t generation)
    : std::runtime_error("elastic: " + printable(message)),
      code_(code),
      peer_(peer),
      generation_(generation) {}
Error::~Error() = default;

}  // namespace elastic
