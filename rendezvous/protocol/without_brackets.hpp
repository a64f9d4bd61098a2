#pragma once

#include <string>

namespace elastic::rendezvous {

/// An address without a port: "[::1]" as "::1", and any other text as it is.
inline std::string without_brackets(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

}  // namespace elastic::rendezvous
