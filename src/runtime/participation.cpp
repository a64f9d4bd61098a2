#include "runtime/participation.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace elastic::runtime {

Participation::Participation(std::string self, std::size_t lanes, Effects& effects)
    : self_(std::move(self)), lanes_(lanes), effects_(effects) {
  // Before its first view a lane is quiesced.
  quiesced_.assign(lanes, Lane{});
}

rendezvous::Register Participation::registration(rendezvous::Register identity) const {
  identity.generation = generation_;
  identity.in_round = report_round_ != 0 || reported_;
  return identity;
}

void Participation::on_welcome() {
  if (ready_) effects_.send(*ready_);
  for (const auto& entry : suspicions_) effects_.send(entry.second);
  if (bye_) effects_.send(*bye_);
}

/// Training goes on without the server: no member can join or leave at a step boundary. A report
/// stays binding although it may be lost: the next server learns from the registration that this
/// worker has reported.
void Participation::on_disconnected() {
  if (reported_) return;
  effects_.withdraw();
  deferred_round_ = 0;
  if (!frozen_) resume();
}

/// Handles a freeze. A deferred one proposes a stop to the training thread, and answers with its
/// promise. An immediate one replaces everything under way, freezes the lanes, and is answered with
/// a report when all are quiesced.
void Participation::on_freeze(const rendezvous::Freeze& freeze) {
  if (freeze.generation != generation_) return;  // of another view
  if (freeze.at_commit > 0) {
    report_round_ = 0;
    deferred_round_ = freeze.round;
    // A stop for an earlier round of this view is void. A stop for a view that is being installed
    // ends when it is installed.
    reported_ = false;
    if (!frozen_) resume();
    const Promise promise = effects_.propose(freeze.round, freeze.at_commit);
    effects_.send(rendezvous::Promise{freeze.round, promise.accepted, promise.commits});
    return;
  }
  log::info("view change: {}", freeze.reason);
  effects_.cancel_connect();
  installing_ = false;
  linking_ = false;
  effects_.withdraw();
  deferred_round_ = 0;
  report_round_ = freeze.round;
  freeze_lanes();
  continue_when_quiesced();
}

void Participation::freeze_lanes() {
  if (frozen_) return;
  frozen_ = true;
  quiesced_.assign(lanes_, std::nullopt);
  effects_.freeze_lanes();
}

void Participation::on_quiesced(std::size_t lane, Lane where) {
  if (!frozen_) return;  // from a freeze that has been answered since
  quiesced_[lane] = std::move(where);
  continue_when_quiesced();
}

/// When all lanes are quiesced: answers the freeze with a report, or links the announced view.
void Participation::continue_when_quiesced() {
  std::vector<Lane> lanes;
  for (const auto& lane : quiesced_) {
    if (!lane) return;
    lanes.push_back(*lane);
  }
  if (report_round_ != 0) {
    send_report(std::exchange(report_round_, 0), lanes);
  } else if (installing_ && !linking_) {
    linking_ = true;
    effects_.connect(*view_);
  }
}

/// Sends the binding report: nothing of this generation is sent or completed here any more.
void Participation::send_report(std::uint64_t round, const std::vector<Lane>& lanes) {
  rendezvous::Report report;
  report.generation = generation_;
  report.round = round;
  for (const Lane& lane : lanes) report.lanes.push_back({lane.position, lane.needs});
  report.commits = effects_.commits();
  report.synced = effects_.synced();
  report.at_boundary = paused_;
  reported_ = true;
  effects_.send(report);
}

/// The training thread has stopped at a step boundary. This is no report: operations of other
/// threads go on, because another member may need them to reach the boundary, and because a round
/// without any report can still be replaced within this view.
void Participation::on_paused(std::uint64_t round) {
  if (!effects_.paused_for(round)) return;
  paused_ = true;
  if (frozen_) return;
  if (round != deferred_round_) return resume();  // that round is void
  effects_.send(rendezvous::Paused{round, effects_.commits()});
}

void Participation::resume() {
  paused_ = false;
  effects_.resume();
}

void Participation::on_check(const rendezvous::Check& check) {
  if (check.members) {
    for (const rendezvous::Member& member : *check.members) effects_.watch_for_end(member);
  }
  if (!view_) return;
  for (const rendezvous::Member& member : view_->members) {
    const auto& asked = check.incarnations;
    if (member.incarnation == self_) continue;
    if (std::find(asked.begin(), asked.end(), member.incarnation) == asked.end()) continue;
    effects_.watch_for_end(member);
  }
}

void Participation::on_ended(const std::string& incarnation) {
  effects_.send(rendezvous::Gone{incarnation, "its process accepts no connections any more"});
}

/// Whether this worker is in `view`. Looks for it from its rank in the view before downwards, where
/// it mostly is: of thousands of members a few are gone.
bool Participation::find_self(const rendezvous::View& view) {
  const auto is_at = [&](std::size_t rank) {
    if (view.members[rank].incarnation != self_) return false;
    rank_ = rank;
    return true;
  };
  const std::size_t above = std::min(rank_ + 1, view.members.size());
  for (std::size_t rank = above; rank > 0; --rank) {
    if (is_at(rank - 1)) return true;
  }
  for (std::size_t rank = above; rank < view.members.size(); ++rank) {
    if (is_at(rank)) return true;
  }
  return false;
}

/// Begins the installation of a view: freezes the lanes, and connects once they are quiesced. Views
/// without this worker, and views that are not newer, are ignored.
void Participation::on_announce(const rendezvous::SharedView& announced) {
  const rendezvous::View& view = *announced;
  if (!find_self(view) || view.generation <= generation_) return;
  if (view.lanes.size() != lanes_) {
    return effects_.end(Status(Code::kProtocol, "the rendezvous server announced a view of " +
                                                    std::to_string(view.lanes.size()) +
                                                    " lanes; this release has " +
                                                    std::to_string(lanes_)));
  }
  if (generation_ == 0) {
    // A freeze before the installation of this view must be answered with these positions, and not
    // with zero.
    std::vector<std::uint64_t> positions;
    for (std::size_t i = 0; i < lanes_; ++i) {
      positions.push_back(view.lanes[i].position);
      quiesced_[i] = Lane{positions.back(), {}};
    }
    effects_.begin_lanes_at(positions);
  }
  generation_ = view.generation;
  view_ = announced;
  suspicions_.clear();
  report_round_ = 0;
  deferred_round_ = 0;
  reported_ = false;
  effects_.withdraw();
  effects_.cancel_connect();
  effects_.forget_ends();
  installing_ = true;
  linking_ = false;
  freeze_lanes();
  continue_when_quiesced();
}

void Participation::on_view_request(const rendezvous::ViewRequest& request) {
  if (view_ && request.generation == generation_) effects_.send(rendezvous::KnownView{view_});
}

void Participation::on_linked(std::uint64_t generation) {
  if (generation != generation_ || !installing_ || !linking_) return;
  installing_ = false;
  linking_ = false;
  frozen_ = false;
  effects_.install(*view_);
  if (deferred_round_ != 0 && effects_.paused_for(deferred_round_)) {
    on_paused(deferred_round_);  // stopped for this view's boundary during the installation
  } else {
    resume();
  }
}

void Participation::on_unlinkable(std::uint64_t generation, const std::string& incarnation,
                                  const std::string& why) {
  if (generation != generation_ || !installing_) return;
  suspect({generation, incarnation, why, true});
}

void Participation::suspect(const rendezvous::Suspect& suspicion) {
  if (suspicion.generation != generation_) return;
  suspicions_[suspicion.incarnation] = suspicion;
  effects_.send(suspicion);
}

void Participation::ready(const rendezvous::Ready& ready) {
  ready_ = ready;
  effects_.send(ready);
}

void Participation::bye(const rendezvous::Bye& bye) {
  bye_ = bye;
  effects_.send(*bye_);
}

}  // namespace elastic::runtime
