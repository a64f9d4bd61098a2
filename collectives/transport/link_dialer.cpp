#include "collectives/transport/link_dialer.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "collectives/transport/descriptor_shortage.hpp"
#include "collectives/transport/flow_count.hpp"
#include "collectives/transport/reach_peer.hpp"
#include "collectives/transport/shm/shm.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kFirstPause{2};
constexpr Milliseconds kLongestPause{100};
/// How long only the direct path is tried: a peer that is there answers sooner. Also the limit for
/// every step on any way, where there are others.
constexpr Milliseconds kDirectOnly{700};

}  // namespace

std::size_t ring_bytes_among(std::size_t workers, std::size_t bytes) {
  constexpr std::size_t kWithWholeRings = 16;
  constexpr std::size_t kStep = 64 * 1024;
  if (workers <= kWithWholeRings) return bytes;
  return std::max(bytes * kWithWholeRings / workers / kStep, std::size_t{1}) * kStep;
}

LinkDialer::LinkDialer(std::shared_ptr<LinkerContext> context, std::shared_ptr<LinkPool> pool,
                       Observer& observer)
    : context_(std::move(context)), pool_(std::move(pool)), observer_(observer) {}

void LinkDialer::enter(const std::vector<Peer>& peers, std::uint64_t generation) {
  generation_ = generation;
  failures_.clear();
  members_.clear();
  for (const Peer& peer : peers) members_.emplace(peer.incarnation, peer);
}

void LinkDialer::dial(const std::vector<Peer>& peers) {
  wanted_ = true;
  for (const Peer& peer : peers) {
    if (!peer.at_once) continue;
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      dial(peer, lane);
    }
  }
}

void LinkDialer::dial(const Peer& peer, std::size_t lane) {
  if (!dials(peer) || pool_->find(peer.incarnation, lane)) return;
  if (!dialing_.insert(peer.incarnation + "/" + std::to_string(lane)).second) return;
  asio::co_spawn(
      context_->io,
      [self = shared_from_this(), peer, lane] { return self->keep_dialing(peer, lane); },
      asio::detached);
}

const Status* LinkDialer::failure(const std::string& incarnation) const {
  const auto found = failures_.find(incarnation);
  return found == failures_.end() ? nullptr : &found->second;
}

bool LinkDialer::wanted(const std::string& incarnation) const {
  return wanted_ && members_.contains(incarnation);
}

std::string LinkDialer::transport_to(const Peer& peer) const {
  const bool same_host = peer.endpoints.host == context_->host;
  return same_host && context_->options.transport != Transport::kTcp ? "shm" : "tcp";
}

/// Tries until the link stands, or is no longer wanted: directly at first, then also through
/// each of the other members in turn.
Task<void> LinkDialer::keep_dialing(Peer peer, std::size_t lane) {
  TimePoint start = Clock::now();
  Milliseconds pause = kFirstPause;
  asio::steady_timer timer(context_->io);
  std::size_t relayed_attempts = 0;
  while (!context_->closed() && wanted(peer.incarnation) && !pool_->find(peer.incarnation, lane)) {
    const std::vector<Peer> relays = relays_to(peer);
    // Path 0 is direct, and each other path goes through one relay.
    const std::size_t path =
        Clock::now() - start < kDirectOnly ? 0 : ++relayed_attempts % (relays.size() + 1);
    const Peer* const relay = path == 0 ? nullptr : &relays[path - 1];
    const Milliseconds limit = relays.empty() ? context_->options.handshake_deadline : kDirectOnly;
    const Status dialed = co_await dial_once(peer, lane, relay, limit);
    if (dialed.ok()) break;
    // A peer that comes further with us, or is in a later view, is reached directly.
    const bool answered = relay == nullptr && dialed.code() == Code::kAborted;
    if (answered || pool_->progress(peer.incarnation) > start) start = Clock::now();
    // The reason why the direct path fails says more than that of a relayed one.
    if (relay == nullptr || !failures_.contains(peer.incarnation)) {
      failures_[peer.incarnation] = dialed;
    }
    log::debug("dialing worker {}: {}", peer.incarnation, dialed.message());
    if (context_->closed()) break;
    observer_.on_dial_failure();
    timer.expires_after(pause);
    pause = std::min(pause * 2, kLongestPause);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  dialing_.erase(peer.incarnation + "/" + std::to_string(lane));
  if (!context_->closed()) observer_.on_dial_end();
}

/// The members that could relay to `peer`. Shared memory cannot be relayed.
std::vector<Peer> LinkDialer::relays_to(const Peer& peer) const {
  std::vector<Peer> found;
  if (transport_to(peer) == "shm") return found;
  for (const auto& [incarnation, member] : members_) {
    if (incarnation != peer.incarnation) found.push_back(member);
  }
  return found;
}

/// Other members.
std::size_t LinkDialer::members_on(const std::string& host) const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(),
                    [&](const auto& member) { return member.second.endpoints.host == host; }));
}

/// The acceptor takes as many as the dialer makes. A relay has few to give.
std::size_t LinkDialer::streams_to(const Peer& peer, bool relayed) const {
  const std::string& there = peer.endpoints.host;
  if (transport_to(peer) == "shm") return 1;
  if (context_->options.streams > 0) return static_cast<std::size_t>(context_->options.streams);
  if (relayed || there == context_->host) return 1;
  const std::size_t others_here = members_on(context_->host);
  return flows_per_link(
      {others_here + 1, members_on(there), (members_.size() - others_here) * lanes()},
      descriptor_limit());
}

/// The number that each stream to the peer takes.
std::size_t LinkDialer::descriptors_to(const Peer& peer) const {
  return transport_to(peer) == "shm" ? kDescriptorsOfShm : 1;
}

std::size_t LinkDialer::descriptors_missing() const {
  std::size_t missing = 0;
  for (const auto& [incarnation, peer] : members_) {
    for (std::size_t lane = 0; peer.at_once && lane < lanes(); ++lane) {
      if (pool_->find(incarnation, lane)) continue;
      const std::size_t wanted = streams_to(peer, false);
      missing +=
          (wanted - std::min(wanted, pool_->streams(incarnation, lane))) * descriptors_to(peer);
    }
  }
  return missing;
}

std::size_t LinkDialer::descriptors_for_all() const {
  std::size_t all = 0;
  for (const auto& [incarnation, peer] : members_) {
    all += lanes() * streams_to(peer, false) * descriptors_to(peer);
  }
  return all;
}

/// `relay` is null for the direct path. `limit` is for each connection and each handshake.
Task<Status> LinkDialer::dial_once(const Peer& peer, std::size_t lane, const Peer* relay,
                                   Milliseconds limit) {
  LinkGreeting greeting;
  greeting.job = context_->options.job;
  greeting.dialer = context_->options.incarnation;
  greeting.acceptor = peer.incarnation;
  greeting.transport = transport_to(peer);
  greeting.link_id = random_id();
  greeting.lane = lane;
  greeting.generation = generation_;
  if (relay != nullptr) greeting.via = relay->incarnation;
  const bool shm = greeting.transport == "shm";
  greeting.streams = streams_to(peer, relay != nullptr);
  for (; greeting.stream < greeting.streams; ++greeting.stream) {
    // Where the first one came through, the way is good, and the peer perhaps busy.
    const Milliseconds step = greeting.stream == 0 ? limit : context_->options.handshake_deadline;
    Result<DataConnection> through = co_await get_through(peer, greeting, relay, step);
    if (!through.ok()) co_return through.status();
    if (context_->closed()) co_return Status(Code::kAborted, "closed");
    StreamPtr stream;
    if (!shm) {
      stream = tcp_stream(std::move(through).value(), context_->options);
    } else {
      Result<StreamPtr> shared = co_await share_memory(through.value().socket, limit);
      if (!shared.ok()) co_return shared.status();
      if (context_->closed()) co_return Status(Code::kAborted, "closed");
      stream = std::move(shared).value();
    }
    pool_->add({peer.incarnation, lane, greeting.link_id, greeting.stream, greeting.streams,
                greeting.via, greeting.generation, std::move(stream)});
  }
  co_return Status();
}

Task<Result<StreamPtr>> LinkDialer::share_memory(DataSocket& socket, Milliseconds limit) {
  const Status late(Code::kTimeout, "the handshake took too long");
  if (!socket.is_open()) co_return late;
  auto memory =
      offer_shm(socket.native_handle(),
                ring_bytes_among(members_on(context_->host) + 1, context_->options.shm_ring_bytes),
                context_->options.arena.get());
  if (!memory.ok()) co_return memory.status();
  {
    const SocketDeadline deadline(socket, limit, context_->sockets);
    boost::system::error_code error;
    co_await socket.async_wait(DataSocket::wait_read,
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return late;
  }
  UniqueFd fd = take_descriptor(socket);
  if (!fd) co_return late;
  co_return conclude_shm(std::move(fd), std::move(memory).value());
}

Task<Result<DataConnection>> LinkDialer::get_through(const Peer& peer, LinkGreeting greeting,
                                                     const Peer* relay, Milliseconds limit) {
  Result<DataSocket> reached =
      co_await reach(*context_, relay == nullptr ? peer : *relay, greeting.transport, limit);
  if (!reached.ok()) co_return reached.status();
  DataConnection with{std::move(reached).value(), nullptr};
  if (relay != nullptr) {
    LinkGreeting request = greeting;
    request.acceptor = relay->incarnation;
    request.target = peer.incarnation;
    request.via.clear();
    // The relay has to connect, too.
    const Status granted = co_await introduce(*context_, with, request, 2 * limit);
    if (!granted.ok()) {
      co_return granted.within("asked worker " + relay->incarnation.substr(0, 8) + " to relay");
    }
  }
  if (Status status = co_await introduce(*context_, with, greeting, limit); !status.ok())
    co_return status;
  co_return std::move(with);
}

}  // namespace elastic::transport
