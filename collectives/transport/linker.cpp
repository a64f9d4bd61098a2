#include "collectives/transport/linker.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/descriptor_shortage.hpp"
#include "collectives/transport/flow_count.hpp"
#include "collectives/transport/link_acceptor.hpp"
#include "collectives/transport/link_dialer.hpp"
#include "collectives/transport/link_failure.hpp"
#include "collectives/transport/link_pool.hpp"
#include "collectives/transport/link_probe.hpp"
#include "collectives/transport/link_relay.hpp"
#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer_end_watch.hpp"
#include "collectives/transport/shm/shm.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

namespace {

/// Some may be about to be closed.
constexpr Milliseconds kWithoutDescriptors{200};
/// Peers that may be linked with us without our having asked for them.
constexpr std::size_t kMostPeers = 4096;

}  // namespace

/// The present call of `connect`, and the parts that it needs. Lives on the control thread. A timer
/// that has expired keeps it alive.
class Linker::Impl : public std::enable_shared_from_this<Linker::Impl>,
                     public LinkAcceptor::Sink,
                     public LinkDialer::Observer {
 public:
  Impl(asio::io_context& io, LinkerOptions options);

  void connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
               Connected callback);
  void cancel();
  void request(const std::string& incarnation, std::size_t lane, std::uint64_t generation,
               Milliseconds deadline, LinkSource::Arrived callback);
  void post(std::function<void()> task) { asio::post(context_->io, std::move(task)); }
  void close();

  LinkAcceptor& acceptor() { return *acceptor_; }
  LinkProbe& probe() { return *probe_; }
  PeerEndWatch& end_watch() { return *end_watch_; }
  LinkTraffic traffic() {
    context_->control_thread.check();
    return pool_->traffic();
  }

 private:
  bool has_room() const override { return pool_->peers() < kMostPeers; }
  void on_connection(DataConnection connection, const LinkGreeting& from) override;
  void on_accept_failure() override { look_for_descriptors(); }
  void on_dial_end() override { on_links(); }
  void on_dial_failure() override { look_for_descriptors(); }

  /// A link that was asked for after `connect`.
  struct Request {
    Request(asio::io_context& io, Peer with, std::size_t in_lane, LinkSource::Arrived answered)
        : peer(std::move(with)), lane(in_lane), callback(std::move(answered)), deadline(io) {}
    Peer peer;
    std::size_t lane;
    LinkSource::Arrived callback;
    asio::steady_timer deadline;
  };
  using RequestPtr = std::shared_ptr<Request>;

  StreamPtr accept_stream(DataConnection connection, const LinkGreeting& from);
  void on_links();
  void answer_requests();
  void answer(const RequestPtr& request, Result<LinkPtr> outcome);
  void finish_if_complete();
  void finish(Result<std::vector<LinksOfPeer>> outcome);
  void set_deadline(TimePoint deadline);
  void on_deadline(std::uint64_t call);
  TimePoint due(const Peer& missing) const;
  DescriptorNeed descriptor_need() const;
  void look_for_descriptors();
  void fall_short();

  const std::shared_ptr<LinkerContext> context_;
  const std::shared_ptr<LinkPool> pool_;
  const std::shared_ptr<LinkAcceptor> acceptor_;
  const std::shared_ptr<LinkDialer> dialer_;
  const std::shared_ptr<LinkRelay> relay_;
  const std::shared_ptr<LinkProbe> probe_;
  const std::shared_ptr<PeerEndWatch> end_watch_;

  std::uint64_t generation_ = 0;  // of the last call of `connect`

  // The last call of `connect`.
  std::vector<Peer> peers_;
  Connected callback_;      // null once it is answered
  std::uint64_t call_ = 0;  // an expiry that was already queued may belong to an earlier call
  TimePoint begun_;
  Milliseconds limit_{};  // for each missing link to come further
  asio::steady_timer deadline_;
  asio::steady_timer without_descriptors_;
  bool lacks_descriptors_ = false;    // that timer runs
  std::vector<RequestPtr> requests_;  // not answered yet
};

Linker::Linker(asio::io_context& io, LinkerOptions options)
    : impl_(std::make_shared<Impl>(io, std::move(options))) {}
Linker::~Linker() {
  close();
}
Status Linker::listen() {
  return impl_->acceptor().listen();
}
const Endpoints& Linker::endpoints() const {
  return impl_->acceptor().endpoints();
}
void Linker::connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
                     Connected callback) {
  impl_->connect(std::move(peers), generation, deadline, std::move(callback));
}
void Linker::cancel() {
  impl_->cancel();
}

/// The source of the links of one view and lane. Passes the requests on to the control thread.
class Linker::Source final : public LinkSource {
 public:
  Source(std::weak_ptr<Impl> impl, std::vector<std::string> incarnations, std::size_t lane,
         std::uint64_t generation, Milliseconds deadline)
      : impl_(std::move(impl)),
        incarnations_(std::move(incarnations)),
        lane_(lane),
        generation_(generation),
        deadline_(deadline) {}

  void request(int rank, Arrived arrived) override {
    const std::shared_ptr<Impl> impl = impl_.lock();
    if (!impl) return;
    impl->post([weak = impl_, peer = incarnations_[static_cast<std::size_t>(rank)], lane = lane_,
                generation = generation_, deadline = deadline_, arrived = std::move(arrived)] {
      if (const auto there = weak.lock()) {
        there->request(peer, lane, generation, deadline, arrived);
      }
    });
  }

 private:
  const std::weak_ptr<Impl> impl_;
  const std::vector<std::string> incarnations_;
  const std::size_t lane_;
  const std::uint64_t generation_;
  const Milliseconds deadline_;
};

std::shared_ptr<LinkSource> Linker::source(std::vector<std::string> incarnations, std::size_t lane,
                                           std::uint64_t generation, Milliseconds deadline) {
  return std::make_shared<Source>(impl_, std::move(incarnations), lane, generation, deadline);
}
void Linker::probe(Peer peer, Milliseconds deadline, Measured callback) {
  impl_->probe().measure(std::move(peer), deadline, std::move(callback));
}
void Linker::watch_for_end(Peer peer, Ended ended) {
  impl_->end_watch().watch(std::move(peer), std::move(ended));
}
void Linker::forget_ends() {
  impl_->end_watch().forget();
}
LinkTraffic Linker::traffic() {
  return impl_->traffic();
}
void Linker::close() {
  impl_->close();
}

Linker::Impl::Impl(asio::io_context& io, LinkerOptions options)
    : context_(std::make_shared<LinkerContext>(io, std::move(options))),
      pool_(std::make_shared<LinkPool>(context_->options.lanes)),
      acceptor_(std::make_shared<LinkAcceptor>(context_, *this)),
      dialer_(std::make_shared<LinkDialer>(context_, pool_, *this)),
      relay_(std::make_shared<LinkRelay>(context_)),
      probe_(std::make_shared<LinkProbe>(context_)),
      end_watch_(std::make_shared<PeerEndWatch>(context_)),
      deadline_(io),
      without_descriptors_(io) {}

void Linker::Impl::connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
                           Connected callback) {
  context_->control_thread.check();
  cancel();
  peers_ = std::move(peers);
  callback_ = std::move(callback);
  generation_ = std::max(generation_, generation);
  acceptor_->set_generation(generation_);
  relay_->set_members(peers_);
  std::set<std::string> names;
  for (const Peer& peer : peers_) names.insert(peer.incarnation);
  pool_->keep_only(names);
  pool_->drop_dead();
  for (const Peer& peer : peers_) {
    if (peer.renew) pool_->drop_old(peer.incarnation, generation_);
  }

  begun_ = Clock::now();
  limit_ = deadline;
  set_deadline(begun_ + deadline);
  const auto far = std::ranges::find_if(
      peers_, [&](const Peer& peer) { return peer.endpoints.host != context_->host; });
  if (context_->options.transport == Transport::kShm && far != peers_.end()) {
    return finish(Status(Code::kUnavailable,
                         "worker " + far->incarnation.substr(0, 8) +
                             " is on another host, where shared memory does not reach: set "
                             "ELASTIC_TRANSPORT to auto or tcp",
                         static_cast<int>(far - peers_.begin())));
  }
  dialer_->enter(peers_, generation_);
  if (dialer_->descriptors_missing() > 0 && descriptor_need().is_short()) return fall_short();
  dialer_->dial(peers_);
  finish_if_complete();
}

void Linker::Impl::cancel() {
  callback_ = nullptr;
  peers_.clear();
  for (const RequestPtr& request : std::exchange(requests_, {})) request->deadline.cancel();
  dialer_->cancel();
  deadline_.cancel();
  without_descriptors_.cancel();
}

void Linker::Impl::request(const std::string& incarnation, std::size_t lane,
                           std::uint64_t generation, Milliseconds deadline,
                           LinkSource::Arrived callback) {
  context_->control_thread.check();
  const auto peer = std::ranges::find(peers_, incarnation, &Peer::incarnation);
  if (peer == peers_.end() || generation != generation_ || callback_) return;  // of an earlier view
  const auto request = std::make_shared<Request>(context_->io, *peer, lane, std::move(callback));
  requests_.push_back(request);
  pool_->drop_dead(incarnation);
  // The other end may come to the operation that needs the link much later.
  if (dialer_->dials(*peer)) {
    request->deadline.expires_after(deadline);
    request->deadline.async_wait([self = shared_from_this(), request](const auto& error) {
      if (error) return;
      const std::string why =
          describe_missing_link(request->peer, self->acceptor_->endpoints(),
                                self->dialer_->failure(request->peer.incarnation));
      self->answer(request, Status(Code::kTimeout, why));
    });
    dialer_->dial(*peer, lane);
  }
  answer_requests();
}

void Linker::Impl::close() {
  cancel();
  probe_->close();
  acceptor_->close();
  context_->sockets.close();
  pool_->clear();
}

void Linker::Impl::on_connection(DataConnection connection, const LinkGreeting& from) {
  if (!from.target.empty()) return relay_->serve(std::move(connection.socket), from);
  if (from.transport == kProbe) return probe_->serve(std::move(connection));
  StreamPtr stream = accept_stream(std::move(connection), from);
  if (!stream) return;
  pool_->add({from.dialer, from.lane, from.link_id, from.stream, from.streams, from.via,
              from.generation, std::move(stream)});
  on_links();
}

/// Null if that fails.
StreamPtr Linker::Impl::accept_stream(DataConnection connection, const LinkGreeting& from) {
  if (from.transport != "shm") return tcp_stream(std::move(connection), context_->options);
  UniqueFd fd = take_descriptor(connection.socket);
  if (!fd) return nullptr;
  Result<StreamPtr> accepted = accept_shm(std::move(fd), context_->options.arena.get());
  if (accepted.ok()) return std::move(accepted).value();
  log::info("dropped a data connection: {}", accepted.status().message());
  look_for_descriptors();
  return nullptr;
}

void Linker::Impl::on_links() {
  finish_if_complete();
  answer_requests();
}

void Linker::Impl::answer_requests() {
  for (const RequestPtr& request : std::vector<RequestPtr>(requests_)) {
    if (!pool_->find(request->peer.incarnation, request->lane)) continue;
    answer(request, pool_->hand_out(request->peer.incarnation, request->lane));
  }
}

void Linker::Impl::answer(const RequestPtr& request, Result<LinkPtr> outcome) {
  if (std::erase(requests_, request) == 0) return;
  request->deadline.cancel();
  request->callback(std::move(outcome));
}

void Linker::Impl::finish_if_complete() {
  if (!callback_) return;
  for (const Peer& peer : peers_) {
    if (peer.at_once && !pool_->complete(peer.incarnation)) return;
  }
  std::vector<LinksOfPeer> links;
  for (const Peer& peer : peers_) {
    links.push_back(peer.at_once ? pool_->hand_out(peer.incarnation) : LinksOfPeer());
  }
  finish(std::move(links));
}

void Linker::Impl::finish(Result<std::vector<LinksOfPeer>> outcome) {
  const Connected callback = std::exchange(callback_, nullptr);
  if (outcome.ok()) {
    deadline_.cancel();  // further links may be asked for as long as the view lasts
  } else {
    cancel();
  }
  if (callback) callback(std::move(outcome));
}

void Linker::Impl::set_deadline(TimePoint deadline) {
  deadline_.expires_at(deadline);
  deadline_.async_wait(
      [self = shared_from_this(), call = ++call_](boost::system::error_code error) {
        if (!error) self->on_deadline(call);
      });
}

/// A link of many streams takes long on a busy host: as long as they come, more are waited for.
TimePoint Linker::Impl::due(const Peer& missing) const {
  return std::max(begun_, pool_->progress(missing.incarnation)) + limit_;
}

void Linker::Impl::on_deadline(std::uint64_t call) {
  if (call != call_ || !callback_) return;
  auto first = peers_.end();
  for (auto peer = peers_.begin(); peer != peers_.end(); ++peer) {
    if (!peer->at_once || pool_->complete(peer->incarnation)) continue;
    if (first == peers_.end() || due(*peer) < due(*first)) first = peer;
  }
  if (first == peers_.end()) return finish_if_complete();
  if (due(*first) > Clock::now()) return set_deadline(due(*first));
  finish(Status(
      Code::kTimeout,
      describe_missing_link(*first, acceptor_->endpoints(), dialer_->failure(first->incarnation)),
      static_cast<int>(first - peers_.begin())));
}

/// Sockets on their way to a link count as free: the link is among the missing ones.
DescriptorNeed Linker::Impl::descriptor_need() const {
  DescriptorNeed need;
  need.limit = descriptor_limit();
  const std::size_t free = std::min(free_descriptors(need.limit), need.limit);
  need.free = free + std::min(need.limit - free, acceptor_->beginning() + context_->sockets.size());
  need.linked = pool_->descriptors();
  need.missing = dialer_->descriptors_missing();
  need.members = peers_.size() + 1;
  need.all = dialer_->descriptors_for_all();
  return need;
}

/// Some may be about to be closed. If this lasts, links that are wanted cannot be made here.
void Linker::Impl::look_for_descriptors() {
  const auto waits = [this] { return callback_ || !requests_.empty(); };
  if (lacks_descriptors_ || !waits() || !out_of_descriptors()) return;
  lacks_descriptors_ = true;
  without_descriptors_.expires_after(kWithoutDescriptors);
  without_descriptors_.async_wait([self = shared_from_this(), waits](const auto& error) {
    self->lacks_descriptors_ = false;
    if (!error && waits() && out_of_descriptors()) self->fall_short();
  });
}

/// The other members are neither to wait nor to be blamed: they cannot know.
void Linker::Impl::fall_short() {
  const Status why(Code::kUnavailable, describe_shortage(descriptor_need()));
  if (callback_) return finish(why);
  const auto tell = context_->options.on_short;
  cancel();
  if (tell) tell(why);
}

}  // namespace elastic::transport
