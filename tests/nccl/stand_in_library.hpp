#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <string>
#include <utility>
#include <vector>

#include "nccl/stand_in.hpp"
#include "nccl/stand_in_fabric.hpp"

#define NCCL_EXPORT extern "C" [[gnu::visibility("default")]]

/// A communicator. Kept until `reset`, so that its use after its end is seen.
struct ncclComm {
  std::string id;
  int rank = 0;
  int size = 0;
  std::string under_way;  // the call
  bool gone = false;      // no call may come any more
  bool ended = false;     // and it has given everything back
  int polls_to_go = 0;    // of what is in progress
  bool never_done = false;
  bool fails = false;
  bool connects = false;                // it waits for all ranks' NcclScript::connects_in
  std::unique_ptr<ncclComm> shrinking;  // what it is being shrunk to
  ncclComm** shrinks_to = nullptr;      // where that is handed out at the end
  bool shrink_failed = false;
  ncclComm* parent = nullptr;  // refers to this one, and has to end first
  std::map<const std::byte*, std::size_t> registered;
  std::uint64_t allreduces = 0;
  std::unique_ptr<elastic::nccl_stand_in::Fabric> fabric;
  std::atomic<bool> called_off{false};
  std::atomic<int> on_streams{0};  // collectives that streams have to make or are making
};

namespace elastic::nccl_stand_in {

/// The state that all calls of the stand-in share: its scripts, and its counts and findings.
struct Library {
  std::mutex mutex;
  std::condition_variable released_or_more;
  bool released = false;
  std::map<int, collectives::nccl::NcclScript> scripts;
  std::map<int, int> failures;
  std::map<int, int> collectives;          // by rank
  std::map<std::string, int> connections;  // ranks that have come to connect, by communicator
  std::vector<std::unique_ptr<ncclComm>> comms;
  int open_groups = 0;  // of all threads
  /// Whether a rank's result came to registered memory, by communicator and number of the
  /// allreduce.
  std::map<std::pair<std::string, std::uint64_t>, bool> in_registered;
  collectives::nccl::NcclCounts counts;
  collectives::nccl::NcclStandIn::Config config;
  std::vector<std::string> violations;
  std::function<void(int)> on_poll;
};
Library& library();

using Lock = std::unique_lock<std::mutex>;

void wait_for_release(Lock& lock);

/// A call on a communicator; notes what is not allowed.
class Entered {
 public:
  Entered(Lock& lock, ncclComm* comm, const std::string& call);
  ~Entered() { comm_->under_way.clear(); }

 private:
  Lock& lock_;
  ncclComm* const comm_;
};

/// Notes what a call asks for, and what is wrong with it.
void note_config(const ncclConfig_t* config, const char* call);
constexpr int kPolls = 3;  // until what is begun is done
bool in_progress(const ncclComm& comm);
/// Ends the shrinking of `comm`, as NCCL's thread does.
void hand_out_shrunk(ncclComm& comm, bool failed);
/// Notes a violation if the call is made while something is in progress: only polls and aborts may.
void requires_idle(const ncclComm& comm, const char* call);

}  // namespace elastic::nccl_stand_in
