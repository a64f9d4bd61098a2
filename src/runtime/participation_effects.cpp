#include "runtime/participation_effects.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/asio/ip/address.hpp>

#include "base/log.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::runtime {

namespace {

/// Time for a peer to answer. A later one is reported to the server, which decides what follows.
constexpr Milliseconds kLinkDeadline{5000};

bool on_loopback(const std::string& address) {
  boost::system::error_code error;
  const auto host = boost::asio::ip::make_address(address, error);
  return !error && host.is_loopback();
}

}  // namespace

void ParticipationEffects::connect_to(rendezvous::Client& client, transport::Linker& linker,
                                      Participation& receiver) {
  client_ = &client;
  linker_ = &linker;
  receiver_ = &receiver;
}

void ParticipationEffects::send(const rendezvous::Message& message) {
  if (const auto* report = std::get_if<rendezvous::Report>(&message)) {
    parts_.clock.report(report->generation);
  }
  client_->send(message);
}

void ParticipationEffects::freeze_lanes() {
  for (const auto& lane : parts_.lanes) lane->freeze();
}

void ParticipationEffects::begin_lanes_at(const std::vector<std::uint64_t>& positions) {
  for (std::size_t i = 0; i < kLanes; ++i) parts_.lanes[i]->begin_at(positions[i]);
}

void ParticipationEffects::connect(const rendezvous::View& view) {
  parts_.clock.decide(view);
  // Not when a view comes into force: a death may keep the one that admits this worker from that
  // here, and not on others.
  if (admits(view, parts_.identity.incarnation)) {
    const ViewSummary summary = summarise(view, parts_.identity.incarnation);
    parts_.status.set_roster(roster_of(*summary.members, 0));
  }
  auto peers = peers_of(view, parts_.identity.incarnation, all_linked());
  linker_->connect(std::move(peers), view.generation, kLinkDeadline,
                   [this, view](Result<std::vector<transport::Linker::LinksOfPeer>> links) {
                     on_connected(view, std::move(links));
                   });
}

void ParticipationEffects::on_connected(const rendezvous::View& view,
                                        Result<std::vector<transport::Linker::LinksOfPeer>> links) {
  if (links.ok()) {
    links_ = std::move(links).value();
    parts_.clock.link();
    return receiver_->on_linked(view.generation);
  }
  const Status& failure = links.status();
  if (failure.code() == Code::kUnavailable) return on_unable(view, failure);
  log::warn("cannot link with the members of generation {}: {}", view.generation,
            failure.message());
  receiver_->on_unlinkable(view.generation,
                           peer_at(view, parts_.identity.incarnation, failure.peer()),
                           failure.message());
}

/// This process cannot make its links in `view`: it lacks descriptors, or has no transport to a
/// peer. A joiner is not worth a member; otherwise this worker leaves, so that no member is blamed
/// for links that cannot be made here.
void ParticipationEffects::on_unable(const rendezvous::View& view, const Status& why) {
  const auto find = [&](const std::string& incarnation) {
    return std::ranges::find(view.members, incarnation, &rendezvous::Member::incarnation);
  };
  const auto self = find(parts_.identity.incarnation);
  auto joiner = view.members.end();
  if (why.peer() >= 0) joiner = find(peer_at(view, parts_.identity.incarnation, why.peer()));
  if (joiner == view.members.end() || joiner->synced) {
    joiner = std::ranges::find(view.members, false, &rendezvous::Member::synced);
  }
  if (!self->synced || joiner == view.members.end()) return parts_.leave(why);
  log::warn("cannot link with the joiners of generation {}: {}", view.generation, why.message());
  receiver_->on_unlinkable(view.generation, joiner->incarnation, why.message());
}

int ParticipationEffects::all_linked() const {
  return parts_.backends.use_all_links() ? std::numeric_limits<int>::max()
                                         : parts_.options.all_linked;
}

void ParticipationEffects::cancel_connect() {
  linker_->cancel();
}

void ParticipationEffects::watch_for_end(const rendezvous::Member& member) {
  linker_->watch_for_end(peer_of(member), [this, incarnation = member.incarnation] {
    receiver_->on_ended(incarnation);
  });
}

void ParticipationEffects::forget_ends() {
  linker_->forget_ends();
}

void ParticipationEffects::install(const rendezvous::View& view) {
  auto summary = std::make_shared<ViewSummary>(summarise(view, parts_.identity.incarnation));
  log::set_name("rank " + std::to_string(summary->members->rank));
  log::info("generation {}: rank {} of {}: {}", view.generation, summary->members->rank,
            summary->members->size(), view.cause);
  warn_of_forgery(*summary);
  const LaneParts parts{
      .abort_events = parts_.abort_events,
      .backends = parts_.backends,
      .sources =
          [this](const auto& incarnations, auto lane, auto generation) {
            return linker_->source(incarnations, lane, generation, kLinkDeadline);
          },
      .all_linked = all_linked(),
      .tcp_threads = parts_.options.tcp_threads,
  };
  const auto lane_views = assemble(view, summary->members, std::exchange(links_, {}), parts);
  if (!lane_views.ok()) return end(lane_views.status());
  parts_.status.set_view(summary);
  parts_.clock.install(view.generation);
  parts_.timeline.record_member(summary->members->rank, summary->members->size(), view.generation);
  for (std::size_t i = 0; i < kLanes; ++i) parts_.lanes[i]->install(lane_views.value()[i]);
}

/// Warns of unencrypted data connections, once per job: on rank 0 of the first view, if the server
/// listens on loopback and thus had no reason to warn.
void ParticipationEffects::warn_of_forgery(const ViewSummary& first) const {
  if (parts_.status.view() || parts_.options.encrypt || first.members->rank != 0 ||
      first.members->generation > 1 ||
      (parts_.options.network.empty() && on_loopback(parts_.options.bind))) {
    return;
  }
  const auto servers = rendezvous::parse_addresses(parts_.identity.address);
  if (!servers.ok()) return;
  const auto first_server = rendezvous::parse_address(servers.value().front());
  if (!first_server.ok() || !on_loopback(first_server.value().host)) return;
  log::warn(
      "accepts data connections on {} without encryption: whoever can change what crosses the "
      "network can forge data of this job; set ELASTIC_ENCRYPT=1 and give the server --encrypt, or "
      "use a network that you trust",
      parts_.options.network.empty() ? parts_.options.bind : parts_.options.network);
}

Participation::Promise ParticipationEffects::propose(std::uint64_t round, std::uint64_t at_commit) {
  return parts_.gate.propose(round, at_commit);
}

void ParticipationEffects::withdraw() {
  parts_.gate.withdraw();
}

void ParticipationEffects::resume() {
  parts_.gate.resume();
}

bool ParticipationEffects::paused_for(std::uint64_t round) const {
  return parts_.gate.paused_for(round);
}

std::uint64_t ParticipationEffects::commits() const {
  return parts_.gate.commits();
}

std::vector<std::uint64_t> ParticipationEffects::positions() const {
  std::vector<std::uint64_t> positions;
  for (const auto& lane : parts_.lanes) positions.push_back(lane->position());
  return positions;
}

bool ParticipationEffects::synced() const {
  return parts_.status.synced();
}

void ParticipationEffects::end(const Status& reason) {
  parts_.status.end(reason);
  parts_.gate.close(reason);
  for (const auto& lane : parts_.lanes) lane->close(reason);
}

}  // namespace elastic::runtime
