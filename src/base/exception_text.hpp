#pragma once

#include <exception>
#include <string>

namespace elastic {

/// What `exception` says, on one line of bounded length. Empty where it says nothing.
std::string text_of(const std::exception_ptr& exception);

}  // namespace elastic
