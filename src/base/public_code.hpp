#pragma once

#include "base/status.hpp"
#include "elastic/error.hpp"

namespace elastic {

/// What the caller sees of a failure inside the library.
ErrorCode public_code(Code code) noexcept;

}  // namespace elastic
