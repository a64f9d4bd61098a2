#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// The fields of every message, named once for both directions: an archive is called with each
/// field's name and the field, which is const where it is written out.
template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

template <typename A, Is<Endpoints> M>
void fields(A& archive, M& m) {
  archive("host", m.host);
  archive("tcp", m.tcp);
  archive("local", m.local);
}
template <typename A, Is<Member> M>
void fields(A& archive, M& m) {
  archive("incarnation", m.incarnation);
  archive("endpoints", m.endpoints);
  archive("pid", m.pid);
  archive("label", m.label);
  archive("synced", m.synced);
}
template <typename A, Is<LaneDecision> M>
void fields(A& archive, M& m) {
  archive("position", m.position);
  archive("holders", m.holders);
  archive("takers", m.takers);
  archive("lost", m.lost);
}
template <typename A, Is<BrokenPair> M>
void fields(A& archive, M& m) {
  archive("one", m.one);
  archive("other", m.other);
}
template <typename A, Is<View> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
  archive("members", m.members);
  archive("lanes", m.lanes);
  archive("commits", m.commits);
  archive("admitted_at", m.admitted_at);
  archive("cause", m.cause);
  archive("joined", m.joined);
  archive("lost", m.lost);
  archive("left", m.left);
  archive("broken", m.broken);
  archive("below_minimum", m.below_minimum);
}
template <typename A, Is<LayoutEntry> M>
void fields(A& archive, M& m) {
  archive("name", m.name);
  archive("type", m.type);
  archive("count", m.count);
}
template <typename A, Is<Report::Lane> M>
void fields(A& archive, M& m) {
  archive("position", m.position);
  archive("needs", m.needs);
}
template <typename A, Is<StatusReply::Waiting> M>
void fields(A& archive, M& m) {
  archive("incarnation", m.incarnation);
  archive("label", m.label);
  archive("pid", m.pid);
  archive("ready", m.ready);
  archive("waits_for", m.waits_for);
}
template <typename A, Is<StatusReply::Departed> M>
void fields(A& archive, M& m) {
  archive("label", m.label);
  archive("how", m.how);
  archive("why", m.why);
}
template <typename A, Is<StatusReply::Progress> M>
void fields(A& archive, M& m) {
  archive("commits", m.commits);
  archive("operations", m.operations);
  archive("synced", m.synced);
  archive("connected", m.connected);
  archive("figures", m.figures);
}
template <typename A, Is<Greeting> M>
void fields(A& archive, M& m) {
  archive("protocol", m.protocol);
  archive("job", m.job);
  archive("role", m.role);
}

template <typename A, Is<StallLimits> M>
void fields(A& archive, M& m) {
  archive("warning_ms", m.warning_ms);
  archive("timeout_ms", m.timeout_ms);
}
template <typename A, Is<CallUnderWay> M>
void fields(A& archive, M& m) {
  archive("kind", m.kind);
  archive("tensor", m.tensor);
  archive("text", m.text);
  archive("ranks", m.ranks);
}

template <typename A, Is<WorkerFigures::Change> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
  archive("seconds", m.seconds);
}
template <typename A, Is<WorkerFigures> M>
void fields(A& archive, M& m) {
  archive("at_s", m.at_s);
  archive("steps", m.steps);
  archive("data_s", m.data_s);
  archive("compute_s", m.compute_s);
  archive("communication_s", m.communication_s);
  archive("view_change_s", m.view_change_s);
  archive("shm_bytes", m.shm_bytes);
  archive("tcp_bytes", m.tcp_bytes);
  archive("gradient_bytes", m.gradient_bytes);
  archive("encoded_bytes", m.encoded_bytes);
  archive("ramp_gamma", m.ramp_gamma);
  archive("ramp_target", m.ramp_target);
  archive("changes", m.changes);
}
template <typename A, Is<JobHistory::Views> M>
void fields(A& archive, M& m) {
  archive("cause", m.cause);
  archive("count", m.count);
  archive("recovery_s", m.recovery_s);
  archive("recoveries", m.recoveries);
}
template <typename A, Is<JobHistory::Event> M>
void fields(A& archive, M& m) {
  archive("at_ms", m.at_ms);
  archive("event", m.event);
  archive("text", m.text);
  archive("seconds", m.seconds);
}
template <typename A, Is<JobHistory::Rate> M>
void fields(A& archive, M& m) {
  archive("at_ms", m.at_ms);
  archive("steps_per_second", m.steps_per_second);
}
template <typename A, Is<JobHistory> M>
void fields(A& archive, M& m) {
  archive("views", m.views);
  archive("events", m.events);
  archive("rates", m.rates);
}

template <typename A, Is<Register> M>
void fields(A& archive, M& m) {
  archive("incarnation", m.incarnation);
  archive("endpoints", m.endpoints);
  archive("pid", m.pid);
  archive("label", m.label);
  archive("order", m.order);
  archive("generation", m.generation);
  archive("stands_still", m.in_round);
  archive("stall", m.stall);
  archive("last_generation", m.last_generation);
  archive("all_linked", m.all_linked);
  archive("end_if_silent", m.end_if_silent);
}
template <typename A, Is<Heartbeat> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
  archive("positions", m.positions);
  archive("commits", m.commits);
  archive("synced", m.synced);
  archive("slowest", m.slowest);
  archive("calls", m.calls);
  archive("figures", m.figures);
}
template <typename A, Is<Suspect> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
  archive("incarnation", m.incarnation);
  archive("reason", m.reason);
  archive("never_linked", m.never_linked);
}
template <typename A, Is<Check> M>
void fields(A& archive, M& m) {
  archive("incarnations", m.incarnations);
  archive("members", m.members);
}
template <typename A, Is<Gone> M>
void fields(A& archive, M& m) {
  archive("incarnation", m.incarnation);
  archive("reason", m.reason);
}
template <typename A, Is<Promise> M>
void fields(A& archive, M& m) {
  archive("round", m.round);
  archive("accepted", m.accepted);
  archive("commits", m.commits);
}
template <typename A, Is<Paused> M>
void fields(A& archive, M& m) {
  archive("round", m.round);
  archive("commits", m.commits);
}
template <typename A, Is<Report> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
  archive("round", m.round);
  archive("lanes", m.lanes);
  archive("commits", m.commits);
  archive("synced", m.synced);
  archive("at_boundary", m.at_boundary);
}
template <typename A, Is<Ready> M>
void fields(A& archive, M& m) {
  archive("layout", m.layout);
  archive("transfer_ms", m.transfer_ms);
}
template <typename A, Is<Bye> M>
void fields(A& archive, M& m) {
  archive("done", m.done);
  archive("failure", m.failure);
  archive("unable", m.unable);
  archive("setup", m.setup);
}
template <typename A, Is<Welcome> M>
void fields(A& archive, M& m) {
  archive("joining", m.joining);
  archive("heartbeat_ms", m.heartbeat_ms);
  archive("donor", m.donor);
}
template <typename A, Is<Wait> M>
void fields(A& archive, M& m) {
  archive("reason", m.reason);
  archive("donor", m.donor);
}
template <typename A, Is<Refuse> M>
void fields(A& archive, M& m) {
  archive("reason", m.reason);
}
template <typename A, Is<Freeze> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
  archive("round", m.round);
  archive("at_commit", m.at_commit);
  archive("reason", m.reason);
}
template <typename A, Is<Announce> M>
void fields(A& archive, M& m) {
  archive("view", m.view);
  archive("heartbeat_ms", m.heartbeat_ms);
}
template <typename A, Is<ViewRequest> M>
void fields(A& archive, M& m) {
  archive("generation", m.generation);
}
template <typename A, Is<KnownView> M>
void fields(A& archive, M& m) {
  archive("view", m.view);
}
template <typename A, Is<ViewChange::Lane> M>
void fields(A& archive, M& m) {
  archive("position", m.position);
  archive("holders", m.holders);
  archive("takers", m.takers);
  archive("lost", m.lost);
}
template <typename A, Is<ViewChange> M>
void fields(A& archive, M& m) {
  archive("before", m.before);
  archive("generation", m.generation);
  archive("stay", m.stay);
  archive("added", m.added);
  archive("synced", m.synced);
  archive("joined", m.joined);
  archive("lost", m.lost);
  archive("left", m.left);
  archive("lanes", m.lanes);
  archive("commits", m.commits);
  archive("admitted_at", m.admitted_at);
  archive("cause", m.cause);
  archive("broken", m.broken);
  archive("below_minimum", m.below_minimum);
}
template <typename A, Is<AnnounceChange> M>
void fields(A& archive, M& m) {
  archive("change", m.change);
  archive("heartbeat_ms", m.heartbeat_ms);
}
template <typename A, Is<Farewell> M>
void fields(A& archive, M& m) {
  archive("reason", m.reason);
  archive("text", m.text);
}
template <typename A, Is<Fail> M>
void fields(A& archive, M& m) {
  archive("reason", m.reason);
  archive("misfit", m.misfit);
  archive("timed_out", m.timed_out);
  archive("mismatch", m.mismatch);
}
template <typename A, Is<Warning> M>
void fields(A& archive, M& m) {
  archive("text", m.text);
}
template <typename A, Is<DumpRequest> M>
void fields(A& archive, M& m) {
  archive("reason", m.reason);
}
template <typename A, Is<AddRequest> M>
void fields(A& archive, M& m) {
  archive("count", m.count);
  archive("or_fewer", m.or_fewer);
  archive("replaces", m.replaces);
}
template <typename A, Is<RemoveRequest> M>
void fields(A& archive, M& m) {
  archive("rank", m.rank);
  archive("label", m.label);
}
template <typename A, Is<LimitRequest> M>
void fields(A& archive, M& m) {
  archive("host", m.host);
  archive("slots", m.slots);
  archive("deadline_ms", m.deadline_ms);
}
template <typename A, Is<PardonRequest> M>
void fields(A& archive, M& m) {
  archive("host", m.host);
}
template <typename A, Is<ExpectRequest> M>
void fields(A& archive, M& m) {
  archive("workers", m.workers);
}
template <typename A, Is<Limited> M>
void fields(A& archive, M& m) {
  archive("slots", m.slots);
  archive("deadline_ms", m.deadline_ms);
}
template <typename A, Is<Enlist> M>
void fields(A& archive, M& m) {
  archive("id", m.id);
  archive("host", m.host);
  archive("slots", m.slots);
  archive("running", m.running);
  archive("spawned", m.spawned);
  archive("number", m.number);
  archive("begun", m.begun);
  archive("ends_silent", m.ends_silent);
}
template <typename A, Is<Enlisted> M>
void fields(A& archive, M& m) {
  archive("number", m.number);
  archive("job", m.job);
  archive("quarantined", m.quarantined);
  archive("returns", m.returns);
}
template <typename A, Is<Quarantined> M>
void fields(A& archive, M& m) {
  archive("on", m.on);
}
template <typename A, Is<WorkerEnded> M>
void fields(A& archive, M& m) {
  archive("serial", m.serial);
  archive("label", m.label);
  archive("failure", m.failure);
  archive("pid", m.pid);
}
template <typename A, Is<EndWorker> M>
void fields(A& archive, M& m) {
  archive("label", m.label);
  archive("pid", m.pid);
  archive("why", m.why);
}
template <typename A, Is<HostQuarantine> M>
void fields(A& archive, M& m) {
  archive("why", m.why);
  archive("left_ms", m.left_ms);
}
template <typename A, Is<StatusReply::Launcher> M>
void fields(A& archive, M& m) {
  archive("number", m.number);
  archive("host", m.host);
  archive("slots", m.slots);
  archive("running", m.running);
  archive("connected", m.connected);
  archive("quarantine", m.quarantine);
}
template <typename A, Is<StatusReply> M>
void fields(A& archive, M& m) {
  archive("job", m.job);
  archive("phase", m.phase);
  archive("view", m.view);
  archive("min_np", m.min_np);
  archive("max_np", m.max_np);
  archive("initial_np", m.initial_np);
  archive("joiners", m.joiners);
  archive("view_changes", m.view_changes);
  archive("heartbeat_age_ms", m.heartbeat_age_ms);
  archive("commits", m.commits);
  archive("steps_per_second", m.steps_per_second);
  archive("slowest", m.slowest);
  archive("progress", m.progress);
  archive("joinable", m.joinable);
  archive("departed", m.departed);
  archive("launchers", m.launchers);
  archive("history", m.history);
}
template <typename A, Is<Done> M>
void fields(A& archive, M& m) {
  archive("ok", m.ok);
  archive("text", m.text);
}
template <typename A, Is<Spawn> M>
void fields(A& archive, M& m) {
  archive("total", m.total);
}
template <typename A, Is<JobState> M>
void fields(A& archive, M& m) {
  archive("phase", m.phase);
  archive("text", m.text);
  archive("joinable", m.joinable);
  archive("end_workers", m.end_workers);
  archive("stopped", m.stopped);
  archive("last", m.last);
}

/// Messages that say all by their type.
template <typename M>
concept Bare = Is<M, StatusRequest> || Is<M, StopRequest>;
template <typename A, Bare M>
void fields(A& /*archive*/, M& /*m*/) {}

}  // namespace elastic::rendezvous
