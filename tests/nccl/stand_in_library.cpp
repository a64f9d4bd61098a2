#include "nccl/stand_in_library.hpp"

namespace elastic::nccl_stand_in {

Library& library() {
  static Library the;
  return the;
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
  if (comm.never_done || comm.polls_to_go > 0) return true;
  return !comm.fabric->all_came();
}

void requires_idle(const ncclComm& comm, const char* call) {
  if (in_progress(comm)) library().violations.push_back(std::string(call) + " while in progress");
}

}  // namespace elastic::nccl_stand_in
