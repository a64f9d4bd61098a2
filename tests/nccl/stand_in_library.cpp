#include "nccl/stand_in_library.hpp"

#include <algorithm>
#include <cstring>

namespace elastic::nccl_stand_in {

/// Never destroyed: communicators are ended while the process exits.
Library& library() {
  static auto* const the = new Library;
  return *the;
}

void wait_for_release(Lock& lock) {
  ++library().counts.waiting;
  library().released_or_more.wait(lock, [] { return library().released; });
  --library().counts.waiting;
}

Entered::Entered(Lock& lock, ncclComm* comm, const std::string& call) : lock_(lock), comm_(comm) {
  auto& violations = library().violations;
  if (comm->gone) violations.push_back(call + " on one that is gone");
  if (!comm->under_way.empty()) violations.push_back(call + " during " + comm->under_way);
  comm->under_way = call;
  lock_.unlock();  // here others would come in, were they let
  lock_.lock();
}

bool in_progress(const ncclComm& comm) {
  if (comm.shrinking) return true;
  if (comm.never_done || comm.polls_to_go > 0) return true;
  if (comm.connects && library().connections[comm.id] < comm.size) return true;
  return !comm.fabric->all_came();
}

void requires_idle(const ncclComm& comm, const char* call) {
  if (in_progress(comm)) library().violations.push_back(std::string(call) + " while in progress");
}

/// As NCCL reads it: as many bytes as there are, and older fields only where its version is old.
void note_config(const ncclConfig_t* config, const char* call) {
  Library& the = library();
  ncclConfig_t its = NCCL_CONFIG_INITIALIZER;
  const unsigned magic = its.magic;
  if (config != nullptr) std::memcpy(&its, config, std::min(config->size, sizeof its));
  if (config == nullptr || its.blocking != 0)
    the.violations.push_back(call + std::string(" that blocks"));
  if (its.magic != magic) the.violations.emplace_back("a configuration without magic");
  the.config = {.min_ctas = its.minCTAs,
                .max_ctas = its.maxCTAs,
                .net = its.netName == nullptr ? "" : its.netName};
#if NCCL_VERSION_CODE >= 22700
  if (its.version >= 22700) the.config.cta_policy = its.CTAPolicy;
#endif
}

}  // namespace elastic::nccl_stand_in
