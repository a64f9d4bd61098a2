#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic::etcd {

/// Bytes as text and back, as JSON carries keys and values (RFC 4648, with padding).
std::string to_base64(std::string_view bytes);
/// Nothing where the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace elastic::etcd
