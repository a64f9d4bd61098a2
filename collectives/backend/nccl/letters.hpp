#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/communicator_state.hpp"

namespace elastic::collectives::nccl {

/// What a rank writes to all others: a mark of one byte and `content`, or why it has none.
std::string letter(const Status& status, const std::string& content);

/// The first letter that says what went wrong, as the error of all ranks. `letters` in rank order.
Status verdict_of(const std::vector<std::string>& letters, const DecidedView& view);

/// kMismatch where two ranks have the same of `places` (CommunicatorPlan::place): a mistake of the
/// program, and found by all ranks.
Status apart(const std::vector<std::string>& places, const DecidedView& view);

}  // namespace elastic::collectives::nccl
