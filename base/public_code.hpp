#pragma once

#include "base/status.hpp"
#include "elastic/error.hpp"

namespace elastic {

/// The code that the caller sees for a failure inside the library.
ErrorCode public_code(Code code) noexcept;

}  // namespace elastic
