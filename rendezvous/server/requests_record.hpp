#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/membership/pending_requests.hpp"

namespace elastic::rendezvous {

inline constexpr const char* kRequestsType = "requests";

/// Requests of people as a record of the journal.
std::string requests_record(const PendingRequests& requests);

/// Nothing where `record`, which is JSON, does not have that form.
std::optional<PendingRequests> parse_requests(std::string_view record);

}  // namespace elastic::rendezvous
