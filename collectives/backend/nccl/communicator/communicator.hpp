#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/communicator_config.hpp"
#include "collectives/backend/nccl/communicator/communicator_state.hpp"
#include "collectives/backend/nccl/communicator/exchange.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"

struct ncclComm;

namespace elastic::collectives::nccl {

class Communicator;

struct CommunicatorPlan {
  DecidedView view;
  Exchange exchange;
  Deadlines deadlines;
  /// Makes this rank's device the current one of the calling thread, before calls of NCCL that use
  /// the current device. May be empty.
  std::function<Status()> choose_device;
  /// Identifies this rank's device, so that all ranks can check that no two share a device: NCCL's
  /// own error does not say so. Empty: not compared.
  std::string place = {};
  NcclTuning tuning = {};
  /// A retired communicator on the same device, from which NCCL may shrink this one. It ends as
  /// soon as this one is ready or cannot be shrunk, or with this one.
  std::shared_ptr<Communicator> parent = {};
};

/// A communicator of NCCL for one view: made in the background, ready when all ranks have it, and
/// ended from any thread. CommunicatorState decides each step; this class carries it out.
///
/// Only one thread at a time is in NCCL for a communicator. Until the communicator is ready, that
/// is a thread of its own. Every wait for NCCL has a deadline. A thread that does not return from
/// NCCL is left behind and keeps the objects that it uses alive. Then `ended` reports that the
/// process has to exit.
///
/// Any thread. NCCL forbids calls on two communicators of one device at the same time; the caller
/// has to see to that.
class Communicator {
 public:
  /// Begins to make a communicator, and does not block.
  static std::unique_ptr<Communicator> prepare(std::shared_ptr<const NcclLibrary> library,
                                               CommunicatorPlan plan);
  /// Aborts the communicator if it has not ended. Does not wait.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Waits until all ranks have the communicator, which must not be used before. The error is the
  /// reason of its death; kTimeout if it is not ready at `until`.
  Status ready(TimePoint until);

  /// Calls NCCL on the communicator and waits until NCCL has accepted the call; `call` returns an
  /// ncclResult_t. Any failure, or no acceptance until `until`, ends the communicator. The error is
  /// kPeerLost if NCCL says so, kTimeout, or the reason of an earlier death. Before it is ready the
  /// error is kUnavailable, and nothing is called. `name` is a string literal. `meanwhile` is
  /// called between polls; its failure ends the communicator, too.
  Status perform(const char* name, const std::function<int(const Api&, ncclComm*)>& call,
                 TimePoint until, const std::function<Status()>& meanwhile = {});

  /// Asks NCCL for an asynchronous error: then kPeerLost, and the communicator is ended.
  Status check();

  /// Cancels what is under way; every later call returns kAborted. Does not block: a thread in the
  /// background ends the communicator. Any thread, any time.
  void abort() noexcept;

  /// At the end of its view, in place of `abort`: keeps the communicator without use, as
  /// CommunicatorPlan::parent of another. False, and nothing has changed, unless it is ready and
  /// no call is under way. The caller knows that the device has no work for it either. It ends
  /// by itself after Deadlines::kept, or with the communicator that is made of it.
  bool retire();

  /// After `abort`: waits until NCCL has released all resources. kUnavailable: it never will, and
  /// this worker has to exit; it can come back as a joiner. kTimeout: not yet at `until`.
  Status ended(TimePoint until);

  Phase phase() const;
  /// Whether it may still be made of CommunicatorPlan::parent, which it keeps.
  bool has_parent() const;
  const DecidedView& view() const;

 private:
  class Body;
  explicit Communicator(std::shared_ptr<Body> body) : body_(std::move(body)) {}

  const std::shared_ptr<Body> body_;
};

}  // namespace elastic::collectives::nccl
