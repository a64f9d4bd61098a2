#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator_state.hpp"
#include "collectives/backend/nccl/exchange.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"

struct ncclComm;

namespace elastic::collectives::nccl {

struct CommunicatorPlan {
  DecidedView view;
  Exchange exchange;
  Deadlines deadlines;
  /// Selects this rank's device for the thread that calls it, in front of what NCCL does for the
  /// current device. May be empty.
  std::function<Status()> choose_device;
  /// Where this rank's device is, for all ranks to see that no two are on one: NCCL says of that
  /// only that it is wrong. Empty: not compared.
  std::string place = {};
};

/// A communicator of NCCL for one view: made in the background, ready when all ranks have it, and
/// ended from any thread. What to do when is decided by CommunicatorState; here it is done.
///
/// All calls of NCCL for it are made one at a time, by whichever thread has the turn: until it is
/// ready that is a thread of its own. None of ours waits for NCCL without an end. A thread that
/// NCCL does not let go is left behind, with what it needs; then `ended` says that the process has
/// to exit.
///
/// Any thread; but calls of NCCL on two communicators of one device are not to be made at once
/// (NCCL's rule), which is the caller's to see to.
class Communicator {
 public:
  /// Begins at once, and does not block.
  static std::unique_ptr<Communicator> prepare(std::shared_ptr<const NcclLibrary> library,
                                               CommunicatorPlan plan);
  /// Aborts it if it has not ended, and waits for nothing.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Waits until all ranks have it: then and not before it may be used. The error is why it died;
  /// kTimeout where it is still under way at `until`.
  Status ready(TimePoint until);

  /// A call on the communicator, and the wait until NCCL has taken it up; `call` returns an
  /// ncclResult_t. Whatever fails, or is not taken up until `until`, ends the communicator: with
  /// kPeerLost where NCCL says so, kTimeout, or why it had died. kUnavailable, and nothing is
  /// called, before it is ready. `name` is a string literal. `meanwhile` is asked between polls;
  /// its failure ends the communicator, too.
  Status perform(const char* name, const std::function<int(const Api&, ncclComm*)>& call,
                 TimePoint until, const std::function<Status()>& meanwhile = {});

  /// Asks NCCL whether something went wrong meanwhile: kPeerLost, and the communicator is ended.
  Status check();

  /// From now on every call returns kAborted, and what is under way is called off. Quick, any
  /// thread, any time; what is left to do is done in the background.
  void abort() noexcept;

  /// After `abort`: waits until NCCL has given everything back. kUnavailable: it never will, and
  /// this worker has to exit; it can come back as a joiner. kTimeout: not yet.
  Status ended(TimePoint until);

  Phase phase() const;

 private:
  class Body;
  explicit Communicator(std::shared_ptr<Body> body) : body_(std::move(body)) {}

  const std::shared_ptr<Body> body_;
};

}  // namespace elastic::collectives::nccl
