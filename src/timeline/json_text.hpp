#pragma once

#include <string>
#include <string_view>

namespace elastic::timeline {

/// `text` as it stands between the quotes of a JSON string, in ASCII. Bytes that are no UTF-8 are
/// replaced.
std::string json_text(std::string_view text);

}  // namespace elastic::timeline
