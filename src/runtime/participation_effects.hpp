#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/linker.hpp"
#include "coordinator/lane.hpp"
#include "elastic/options.hpp"
#include "rendezvous/client/client.hpp"
#include "runtime/backends.hpp"
#include "runtime/commit_gate.hpp"
#include "runtime/identity.hpp"
#include "runtime/membership_status.hpp"
#include "runtime/participation.hpp"
#include "runtime/view_assembly.hpp"
#include "runtime/view_change_clock.hpp"

namespace elastic::runtime {

using Lanes = std::array<std::unique_ptr<coordinator::Lane>, kLanes>;

/// Carries out what Participation decides: on the connection to the server, the Linker, the lanes,
/// and the training thread.
///
/// Belongs to the control thread, except for `end`, which any thread may call.
class ParticipationEffects final : public Participation::Effects {
 public:
  /// The parts of the worker that it acts on; they outlive it.
  struct Parts {
    const Identity& identity;
    const Options& options;
    const Backends& backends;
    CommitGate& gate;
    MembershipStatus& status;
    ViewChangeClock& clock;
    timeline::Timeline& timeline;
    const Lanes& lanes;
    const AbortEvents& abort_events;
    std::function<void(const Status&)> leave;  ///< this worker leaves the job with that error
  };

  explicit ParticipationEffects(const Parts& parts) : parts_(parts) {}

  /// Sets the connections that it acts on, and `receiver`, which gets the answers as events. Call
  /// it before the first event reaches `receiver`.
  void connect_to(rendezvous::Client& client, transport::Linker& linker, Participation& receiver);

  void send(const rendezvous::Message& message) override;
  void freeze_lanes() override;
  void begin_lanes_at(const std::vector<std::uint64_t>& positions) override;
  void connect(const rendezvous::View& view) override;
  void cancel_connect() override;
  void watch_for_end(const rendezvous::Member& member) override;
  void forget_ends() override;
  void install(const rendezvous::View& view) override;
  Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit) override;
  void withdraw() override;
  void resume() override;
  bool paused_for(std::uint64_t round) const override;
  std::uint64_t commits() const override;
  std::vector<std::uint64_t> positions() const override;
  bool synced() const override;
  void end(const Status& reason) override;

 private:
  void on_connected(const rendezvous::View& view,
                    Result<std::vector<transport::Linker::LinksOfPeer>> links);
  void on_unable(const rendezvous::View& view, const Status& why);
  /// Up to how many members all are linked with each other from the start.
  int all_linked() const;
  void warn_of_forgery(const ViewSummary& first) const;

  const Parts parts_;
  rendezvous::Client* client_ = nullptr;
  transport::Linker* linker_ = nullptr;
  Participation* receiver_ = nullptr;
  std::vector<transport::Linker::LinksOfPeer> links_;  // for the view to be installed next
};

}  // namespace elastic::runtime
