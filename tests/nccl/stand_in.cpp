// Communicators, and what they are told to do.
#include "nccl/stand_in.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <nccl.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "nccl/stand_in_driver.hpp"
#include "nccl/stand_in_fabric.hpp"
#include "nccl/stand_in_library.hpp"

using elastic::collectives::nccl::NcclCounts;
using elastic::collectives::nccl::NcclScript;
using elastic::collectives::nccl::NcclStandIn;
using elastic::nccl_stand_in::Entered;
using elastic::nccl_stand_in::Fabric;
using elastic::nccl_stand_in::hand_out_shrunk;
using elastic::nccl_stand_in::in_progress;
using elastic::nccl_stand_in::kPolls;
using elastic::nccl_stand_in::Library;
using elastic::nccl_stand_in::library;
using elastic::nccl_stand_in::Lock;
using elastic::nccl_stand_in::note_config;
using elastic::nccl_stand_in::requires_idle;
using elastic::nccl_stand_in::wait_for_release;

namespace {

int launch(ncclComm* comm, bool never_done) {
  Lock lock(library().mutex);
  requires_idle(*comm, "launch");
  const Entered entered(lock, comm, "launch");
  ++library().counts.launches;
  comm->never_done = never_done;
  comm->polls_to_go = kPolls;
  return ncclInProgress;
}

int launch_and_hang(ncclComm* comm) {
  Lock lock(library().mutex);
  const Entered entered(lock, comm, "launch");
  ++library().counts.launches;
  wait_for_release(lock);
  return ncclSuccess;
}

void reset() {
  const Lock lock(library().mutex);
  Library& the = library();
  the.released = false;
  the.scripts.clear();
  the.failures.clear();
  the.collectives.clear();
  the.comms.clear();
  the.in_registered.clear();
  the.counts = {};
  the.violations.clear();
  the.on_poll = nullptr;
}

void script(int rank, const NcclScript& script) {
  const Lock lock(library().mutex);
  library().scripts[rank] = script;
}

void fail(int rank, int result) {
  const Lock lock(library().mutex);
  library().failures[rank] = result;
}

void release() {
  const Lock lock(library().mutex);
  library().released = true;
  library().released_or_more.notify_all();
}

void on_poll(std::function<void(int)> call) {
  const Lock lock(library().mutex);
  library().on_poll = std::move(call);
}

NcclCounts counts() {
  const Lock lock(library().mutex);
  return library().counts;
}

NcclStandIn::Config config() {
  const Lock lock(library().mutex);
  return library().config;
}

std::vector<std::string> violations() {
  const Lock lock(library().mutex);
  std::vector<std::string> all = library().violations;
  if (library().open_groups != 0) all.emplace_back("a group that was not ended");
  for (const auto& comm : library().comms) {
    if (!comm->gone) all.emplace_back("a communicator that was not released");
  }
  return all;
}

ncclResult_t progress(ncclComm& comm) {
  const auto failure = library().failures.find(comm.rank);
  if (failure != library().failures.end()) return static_cast<ncclResult_t>(failure->second);
  if (library().scripts[comm.rank].error_of_size == comm.size) return ncclRemoteError;
  if (comm.shrinking) {
    ncclComm& shrunk = *comm.shrinking;
    const bool fails = shrunk.fails && shrunk.polls_to_go == 0;
    const bool goes_on = in_progress(shrunk);
    if (shrunk.polls_to_go > 0) --shrunk.polls_to_go;
    if (goes_on && !fails) return ncclInProgress;
    hand_out_shrunk(comm, fails);
  }
  if (comm.shrink_failed) return ncclRemoteError;
  if (comm.fails && comm.polls_to_go == 0) return ncclRemoteError;
  if (!in_progress(comm)) return ncclSuccess;
  if (comm.polls_to_go > 0) --comm.polls_to_go;
  return ncclInProgress;
}

}  // namespace

NCCL_EXPORT const NcclStandIn nccl_stand_in = {
    reset, script, fail, release, on_poll, counts, violations, config, launch, launch_and_hang};

NCCL_EXPORT ncclResult_t ncclGetVersion(int* version) {
  const char* const told = std::getenv("NCCL_STAND_IN_VERSION");
  *version = told == nullptr ? 22809 : std::atoi(told);
  return ncclSuccess;
}

NCCL_EXPORT const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled system error";
}

NCCL_EXPORT const char* ncclGetLastError(ncclComm_t) {
  return "as it was told to";
}

NCCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Lock lock(library().mutex);
  *id = {};
  static int serial = 0;
  ++library().counts.ids;
  const std::string text = std::to_string(::getpid()) + "-" + std::to_string(++serial);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id,
                                                int rank, ncclConfig_t* config) {
  Lock lock(library().mutex);
  Library& the = library();
  ++the.counts.inits;
  note_config(config, "an init");
  const NcclScript script = the.scripts[rank];
  if (script.init == NcclScript::Init::kNeverReturns) wait_for_release(lock);
  if (script.init == NcclScript::Init::kFailsAtOnce)
    return static_cast<ncclResult_t>(script.failure);
  auto comm = std::make_unique<ncclComm>();
  comm->id = id.internal;
  comm->rank = rank;
  comm->size = size;
  comm->polls_to_go = kPolls;
  comm->never_done = script.init == NcclScript::Init::kNeverDone;
  comm->fails = script.init == NcclScript::Init::kFailsLater;
  comm->fabric = std::make_unique<Fabric>(comm->id, rank, size);
  *made = comm.get();
  the.comms.push_back(std::move(comm));
  return ncclInProgress;
}

NCCL_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  Lock lock(library().mutex);
  const Entered entered(lock, comm, "poll");
  if (const auto call = library().on_poll) {
    lock.unlock();
    call(comm->rank);
    lock.lock();
  }
  *state = progress(*comm);
  return ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock(library().mutex);
  requires_idle(*comm, "destroy");
  const Entered entered(lock, comm, "destroy");
  comm->gone = true;
  comm->ended = true;
  return ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock(library().mutex);
  const Entered entered(lock, comm, "abort");
  ++library().counts.aborts;
  if (comm->parent != nullptr && !comm->parent->gone) {
    library().violations.emplace_back("an abort before that of its parent, which refers to it");
  }
  if (comm->shrinking) hand_out_shrunk(*comm, /*failed=*/true);
  comm->gone = true;
  comm->called_off = true;
  if (library().scripts[comm->rank].abort_waits) wait_for_release(lock);
  lock.unlock();
  // The driver tells of no event when a stream is done.
  while (comm->on_streams > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (std::getenv("NCCL_STAND_IN_ABORT_WAITS") != nullptr) comm->fabric->wait_for_all_to_abort();
  lock.lock();
  comm->ended = true;
  return ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  return elastic::nccl_stand_in::allocate(memory, bytes) == 0 ? ncclSuccess
                                                              : ncclUnhandledCudaError;
}

NCCL_EXPORT ncclResult_t ncclMemFree(void* memory) {
  {
    const Lock lock(library().mutex);
    for (const auto& comm : library().comms) {
      if (comm->ended || !comm->registered.contains(static_cast<std::byte*>(memory))) continue;
      library().violations.emplace_back("memory is freed that is registered");
    }
  }
  return elastic::nccl_stand_in::free(memory) == 0 ? ncclSuccess : ncclUnhandledCudaError;
}

NCCL_EXPORT ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes,
                                          void** handle) {
  Lock lock(library().mutex);
  requires_idle(*comm, "register");
  const Entered entered(lock, comm, "register");
  ++library().counts.registrations;
  if (library().scripts[comm->rank].refuses_memory) return ncclInvalidUsage;
  const auto [at, is_new] = comm->registered.emplace(static_cast<std::byte*>(memory), bytes);
  if (!is_new) library().violations.emplace_back("memory is registered twice");
  *handle = memory;
  return ncclSuccess;
}
