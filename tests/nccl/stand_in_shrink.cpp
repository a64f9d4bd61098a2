// Communicators of some of the ranks of another.
#include <algorithm>
#include <memory>
#include <nccl.h>
#include <string>
#include <utility>
#include <vector>

#include "nccl/stand_in.hpp"
#include "nccl/stand_in_fabric.hpp"
#include "nccl/stand_in_library.hpp"

using elastic::collectives::nccl::NcclScript;
using elastic::nccl_stand_in::Entered;
using elastic::nccl_stand_in::Fabric;
using elastic::nccl_stand_in::kPolls;
using elastic::nccl_stand_in::Library;
using elastic::nccl_stand_in::library;
using elastic::nccl_stand_in::Lock;
using elastic::nccl_stand_in::note_config;
using elastic::nccl_stand_in::requires_idle;
using elastic::nccl_stand_in::wait_for_release;

namespace {

constexpr int kAbort = 1;  // NCCL_SHRINK_ABORT

std::unique_ptr<ncclComm> shrunk_from(const ncclComm& parent, const std::vector<int>& excluded) {
  auto comm = std::make_unique<ncclComm>();
  comm->id = parent.id;
  comm->rank = parent.rank;
  for (const int each : excluded) {
    comm->id += "-" + std::to_string(each);
    if (each < parent.rank) --comm->rank;
  }
  comm->size = parent.size - static_cast<int>(excluded.size());
  comm->polls_to_go = kPolls;
  comm->fabric = std::make_unique<Fabric>(comm->id, comm->rank, comm->size);
  return comm;
}

}  // namespace

namespace elastic::nccl_stand_in {

void hand_out_shrunk(ncclComm& comm, bool failed) {
  comm.shrink_failed = failed;
  if (failed) comm.shrinking->parent = &comm;
  *comm.shrinks_to = comm.shrinking.get();
  library().comms.push_back(std::move(comm.shrinking));
}

}  // namespace elastic::nccl_stand_in

/// As NCCL's: returns ncclSuccess while a thread works on it, of which the state is the parent's.
NCCL_EXPORT ncclResult_t ncclCommShrink(ncclComm_t parent, int* excluded, int count,
                                        ncclComm_t* made, ncclConfig_t* config, int flags) {
  Lock lock(library().mutex);
  Library& the = library();
  requires_idle(*parent, "shrink");
  const Entered entered(lock, parent, "shrink");
  ++the.counts.shrinks;
  *made = nullptr;
  note_config(config, "a shrink");
  if (flags != kAbort) the.violations.push_back("a shrink that may share its abort flag");
  const std::vector<int> ranks(excluded, excluded + count);
  const bool is_sorted = std::ranges::is_sorted(ranks);
  if (count < 1 || count >= parent->size || !is_sorted || ranks.front() < 0 ||
      ranks.back() >= parent->size || std::ranges::count(ranks, parent->rank) > 0) {
    the.violations.push_back("a shrink by such ranks");
    return ncclInvalidArgument;
  }
  if (parent->on_streams > 0) the.violations.push_back("a shrink of one in use");
  if (const auto failure = the.failures.find(parent->rank); failure != the.failures.end()) {
    return static_cast<ncclResult_t>(failure->second);
  }
  const NcclScript script = the.scripts[parent->rank];
  if (script.shrink == NcclScript::Init::kNeverReturns) wait_for_release(lock);
  if (script.shrink == NcclScript::Init::kFailsAtOnce) {
    return static_cast<ncclResult_t>(script.failure);
  }
  parent->shrinking = shrunk_from(*parent, ranks);
  parent->shrinking->never_done = script.shrink == NcclScript::Init::kNeverDone;
  parent->shrinking->fails = script.shrink == NcclScript::Init::kFailsLater;
  parent->shrinks_to = made;
  return ncclSuccess;
}
