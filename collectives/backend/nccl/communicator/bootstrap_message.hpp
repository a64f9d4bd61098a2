#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/communicator_state.hpp"

namespace elastic::collectives::nccl {

/// The text of a rank's message: one byte that says which, then `content`, or the failure `status`.
std::string bootstrap_message(const Status& status, const std::string& content);

/// The first failure in `messages`, as the error of all ranks. `messages` are in rank order.
Status verdict_of(const std::vector<std::string>& messages, const DecidedView& view);

/// kMismatch if two of `places` (CommunicatorPlan::place) are the same, that is, two ranks use one
/// device: a mistake of the program, which all ranks find.
Status require_distinct_devices(const std::vector<std::string>& places, const DecidedView& view);

}  // namespace elastic::collectives::nccl
