#include "collectives/transport/linker.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "base/log.hpp"
#include "collectives/transport/linker_impl.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

namespace {

/// Some may be about to be closed.
constexpr Milliseconds kWithoutDescriptors{200};

bool on_loopback_only(const Endpoints& endpoints) {
  return !endpoints.tcp.empty() &&
         std::ranges::all_of(endpoints.tcp, [](const std::string& address) {
           return address.starts_with("127.") || address.starts_with("[::1]");
         });
}

/// Where two hosts have no link because one of them cannot be reached by any: what to do about it.
std::string bind_advice(const Endpoints& peer, const Endpoints& own) {
  if (peer.host == own.host) return {};
  const bool of_peer = on_loopback_only(peer);
  if (!of_peer && !on_loopback_only(own)) return {};
  const Endpoints& hidden = of_peer ? peer : own;
  return std::string("; ") + (of_peer ? "it" : "this worker") + " listens on " +
         hidden.tcp.front() +
         " only, which other hosts do not reach: set ELASTIC_BIND (Options::bind) for all workers "
         "to an address that they do reach, such as 0.0.0.0";
}

}  // namespace

Linker::Linker(asio::io_context& io, LinkerOptions options)
    : impl_(std::make_shared<Impl>(io, std::move(options))) {}
Linker::~Linker() {
  close();
}
Status Linker::listen() {
  return impl_->listen();
}
const Endpoints& Linker::endpoints() const {
  return impl_->endpoints();
}
void Linker::connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
                     Connected callback) {
  impl_->connect(std::move(peers), generation, deadline, std::move(callback));
}
void Linker::cancel() {
  impl_->cancel();
}
void Linker::probe(Peer peer, Milliseconds deadline, Measured callback) {
  impl_->probe(std::move(peer), deadline, std::move(callback));
}
void Linker::watch_for_end(Peer peer, Ended ended) {
  impl_->watch_for_end(std::move(peer), std::move(ended));
}
void Linker::forget_ends() {
  impl_->forget_ends();
}
void Linker::close() {
  impl_->close();
}

Linker::Impl::Impl(asio::io_context& io, LinkerOptions options)
    : io_(io),
      options_(std::move(options)),
      tcp_(io),
      local_(io),
      pool_(options_.lanes),
      deadline_(io),
      probe_deadline_(io) {}

void Linker::Impl::connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
                           Connected callback) {
  control_thread_.check();
  cancel();
  peers_ = std::move(peers);
  callback_ = std::move(callback);
  failures_.clear();
  generation_ = std::max(generation_, generation);
  members_.clear();
  std::set<std::string> names;
  for (const Peer& peer : peers_) {
    names.insert(peer.incarnation);
    members_.emplace(peer.incarnation, peer);
  }
  pool_.keep_only(names);
  pool_.drop_dead();
  for (const Peer& peer : peers_) {
    if (peer.renew) pool_.drop_used(peer.incarnation);
  }

  hurries_ = false;
  set_deadline(deadline);
  for (const Peer& peer : peers_) {
    if (options_.choice == Choice::kShm && peer.endpoints.host != endpoints_.host) {
      return finish(Status(Code::kInvalidArgument,
                           "worker " + peer.incarnation.substr(0, 8) +
                               " is on another host, where shared memory does not reach: set "
                               "ELASTIC_TRANSPORT to auto or tcp",
                           index_of(peer.incarnation)));
    }
    if (options_.incarnation < peer.incarnation) continue;  // the other side dials
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(options_.lanes); ++lane) {
      if (pool_.find(peer.incarnation, lane)) continue;
      if (!dialing_.insert(peer.incarnation + "/" + std::to_string(lane)).second) continue;
      asio::co_spawn(io_, dial(peer, lane), asio::detached);
    }
  }
  finish_if_complete();
}

void Linker::Impl::cancel() {
  callback_ = nullptr;
  peers_.clear();
  deadline_.cancel();
}

void Linker::Impl::close() {
  closed_ = true;
  cancel();
  measured_ = nullptr;
  probe_deadline_.cancel();
  boost::system::error_code ignored;
  tcp_.close(ignored);
  local_.close(ignored);
  for (Socket* socket : open_) socket->close(ignored);
  pool_.clear();
}

bool Linker::Impl::wanted(const std::string& peer) const {
  return index_of(peer) >= 0;
}

int Linker::Impl::index_of(const std::string& peer) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const Peer& one) { return one.incarnation == peer; });
  return found == peers_.end() ? -1 : static_cast<int>(found - peers_.begin());
}

std::string Linker::Impl::transport_to(const Peer& peer) const {
  const bool same_host = peer.endpoints.host == endpoints_.host;
  return same_host && options_.choice != Choice::kTcp ? "shm" : "tcp";
}

void Linker::Impl::finish_if_complete() {
  if (!callback_) return;
  for (const Peer& peer : peers_) {
    if (!pool_.complete(peer.incarnation)) return;
  }
  std::vector<LinksOfPeer> links;
  for (const Peer& peer : peers_) links.push_back(pool_.hand_out(peer.incarnation));
  finish(std::move(links));
}

void Linker::Impl::finish(Result<std::vector<LinksOfPeer>> outcome) {
  const Connected callback = std::exchange(callback_, nullptr);
  cancel();
  if (callback) callback(std::move(outcome));
}

void Linker::Impl::set_deadline(Milliseconds deadline) {
  deadline_.expires_after(deadline);
  deadline_.async_wait(
      [self = shared_from_this(), call = ++call_](boost::system::error_code error) {
        if (!error) self->on_deadline(call);
      });
}

/// No member is to wait long for links that cannot be made here: the others cannot know.
void Linker::Impl::hurry_without_descriptors() {
  if (!callback_ || hurries_) return;
  const UniqueFd one(::eventfd(0, EFD_CLOEXEC));
  if (one || (errno != EMFILE && errno != ENFILE)) return;
  hurries_ = true;
  set_deadline(kWithoutDescriptors);
}

void Linker::Impl::on_deadline(std::uint64_t call) {
  if (call != call_ || !callback_) return;
  const auto missing = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return !pool_.complete(peer.incarnation);
  });
  if (missing == peers_.end()) return finish_if_complete();
  std::string why = "no link with worker " + missing->incarnation.substr(0, 8) + " in time";
  const auto failure = failures_.find(missing->incarnation);
  if (failure != failures_.end()) why += ": " + failure->second.message();
  if (hurries_) why += "; this process has no descriptors left: raise the limit (ulimit -n)";
  why += bind_advice(missing->endpoints, endpoints_);
  finish(Status(Code::kTimeout, why, static_cast<int>(missing - peers_.begin())));
}

SocketDeadline::SocketDeadline(Socket& socket, Milliseconds deadline, std::set<Socket*>& open)
    : socket_(socket),
      open_(open),
      timer_(socket.get_executor()),
      alive_(std::make_shared<char>()) {
  open_.insert(&socket_);
  restart(deadline);
}

void SocketDeadline::restart(Milliseconds deadline) {
  timer_.expires_after(deadline);
  timer_.async_wait(
      [&socket = socket_, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
        boost::system::error_code ignored;
        if (!error && !alive.expired()) socket.close(ignored);
      });
}

SocketDeadline::~SocketDeadline() {
  open_.erase(&socket_);
}

UniqueFd take_descriptor(Linker::Impl::Socket& socket) {
  boost::system::error_code error;
  const int descriptor = socket.release(error);
  return UniqueFd(error ? -1 : descriptor);
}

}  // namespace elastic::transport
