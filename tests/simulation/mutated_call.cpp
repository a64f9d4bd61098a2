#include "mutated_call.hpp"

#include <utility>

namespace elastic::simulation {

using coordinator::Lane;

Result<Contributors> run_without_leaving(Lane& lane, coordinator::Operation& operation,
                                         Milliseconds view_timeout) {
  for (bool begun = false;; begun = true) {
    Result<Lane::Ownership> ownership = lane.acquire(view_timeout);
    if (!ownership.ok()) return ownership.status();
    if (!begun && !operation.can_begin(*ownership.value().view().members)) {
      return Status(Code::kAborted, "the view has changed before the call began");
    }
    Lane::Attempt tried = lane.resume(ownership.value(), &operation);
    if (!tried.final && tried.status.ok()) tried = lane.attempt(ownership.value(), operation);
    if (!tried.final) continue;
    if (!tried.status.ok()) return tried.status;
    return std::move(tried.contributors);
  }
}

}  // namespace elastic::simulation
