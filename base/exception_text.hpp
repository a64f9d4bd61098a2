#pragma once

#include <exception>
#include <string>

namespace elastic {

/// The message of `exception`, on one line of bounded length. Empty if it has none.
std::string text_of(const std::exception_ptr& exception);

}  // namespace elastic
