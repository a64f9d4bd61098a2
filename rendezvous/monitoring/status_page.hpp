#pragma once

#include <string_view>

namespace elastic::monitoring {

/// The file status_page.html: it shows /status.json, and needs nothing from elsewhere.
extern const std::string_view kStatusPage;

}  // namespace elastic::monitoring
