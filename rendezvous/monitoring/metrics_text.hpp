#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::monitoring {

/// A job's status in the text format of Prometheus; docs/monitoring.md lists the metrics.
std::string metrics_text(const rendezvous::StatusReply& status);

}  // namespace elastic::monitoring
