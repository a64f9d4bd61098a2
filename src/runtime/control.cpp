#include "runtime/control.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "runtime/view_assembly.hpp"

namespace elastic::runtime {

namespace asio = boost::asio;

namespace {

/// Time for a peer to answer. A later one is reported to the server, which decides what follows.
constexpr Milliseconds kLinkDeadline{5000};
/// The client gives up at the same time as `start`. This further wait lets it give its reason.
constexpr Milliseconds kLastWord{500};
/// How long `check_membership` waits for an absent server: a checkpoint does not depend on it.
constexpr Milliseconds kServerAbsence{3000};
/// Number of heartbeat periods. A process that has sent a heartbeat within them was not paused for
/// long.
constexpr int kFreshHeartbeats = 3;

bool on_loopback(const std::string& address) {
  boost::system::error_code error;
  const auto host = asio::ip::make_address(address, error);
  return !error && host.is_loopback();
}

}  // namespace

Control::Control(Identity identity, Options options, const Backends& backends,
                 std::shared_ptr<const transport::Arena> arena)
    : identity_(std::move(identity)),
      options_(std::move(options)),
      backends_(backends),
      arena_(std::move(arena)),
      gate_([this](std::uint64_t round) {
        asio::post(io_, [this, round] { participation_.on_paused(round); });
      }),
      participation_(identity_.incarnation, kLanes, *this),
      application_(
          io_,
          [this](const rendezvous::Member& donor, Milliseconds deadline,
                 const JoinRequest::Measured& measured) {
            linker_->probe(peer_of(donor), deadline, measured);
          },
          [this](const rendezvous::Ready& ready) { participation_.ready(ready); }) {
  const auto spare = std::make_shared<collectives::SpareBuffer>();
  for (std::size_t i = 0; i < kLanes; ++i) {
    coordinator::Lane::Callbacks callbacks;
    callbacks.on_quiet = [this, i](std::uint64_t position, std::string needs) {
      asio::post(io_, [this, i, where = Participation::Lane{position, std::move(needs)}] {
        participation_.on_quiet(i, where);
      });
    };
    callbacks.on_suspect = [this](std::uint64_t generation, std::string incarnation,
                                  std::string reason) {
      view_change_clock_.notice(generation);
      // The other end may report first, and knows only that this end closed the link.
      log::info("link failed: {}", reason);
      asio::post(io_, [this, suspicion = rendezvous::Suspect{generation, std::move(incarnation),
                                                             std::move(reason)}] {
        participation_.suspect(suspicion);
      });
    };
    callbacks.on_resumed = [this] { view_change_clock_.resume(); };
    callbacks.on_leave = [this](const Status& why) { abandon(why); };
    lanes_[i] = std::make_unique<coordinator::Lane>("lane " + std::to_string(i), callbacks, spare);
    abort_events_[i] = std::make_shared<EventFd>();
  }
}

Control::~Control() {
  stop();
  lanes_ = {};
}

void Control::stop() {
  close();
  if (thread_.joinable()) {
    asio::post(io_, [this] {
      application_.close();
      client_->close();
      linker_->close();
      work_.reset();
    });
    thread_.join();
  }
}

Status Control::start() {
  for (const auto& event : abort_events_) {
    if (event->valid()) continue;
    return Status(Code::kUnavailable,
                  "this process has no descriptors left; raise the limit (ulimit -n)");
  }
  linker_ = std::make_unique<transport::Linker>(io_, linker_options(identity_, options_, arena_));
  if (Status listening = linker_->listen(); !listening.ok()) return listening;

  rendezvous::ClientOptions client;
  client.address = identity_.address;
  client.job = identity_.job;
  client.secret = identity_.secret;
  client.encrypt = options_.encrypt;
  client.connect_deadline = options_.init_timeout;
  client.registration = [this] {
    rendezvous::Register self;
    self.incarnation = identity_.incarnation;
    self.endpoints = to_rendezvous(linker_->endpoints());
    self.pid = ::getpid();
    self.label = options_.label;
    self.order = options_.slot;
    self.stall = stall_limits(options_);
    self.last_generation = identity_.last_generation;
    return participation_.registration(std::move(self));
  };
  client.heartbeat = [this] {
    on_heartbeat();
    return heartbeat();
  };
  client_ = std::make_unique<rendezvous::Client>(
      io_, std::move(client),
      rendezvous::Client::Handlers{
          [this](const rendezvous::Message& message) { on_message(message); },
          [this](const Status& failure) { on_failure(failure); }});
  client_->start();
  work_.emplace(io_.get_executor());
  thread_ = std::thread([this] {
    name_this_thread("elastic-control");
    io_.run();
  });

  std::unique_lock<std::mutex> lock(mutex_);
  const bool in_time = changed_.wait_for(lock, options_.init_timeout, [&] {
    return !ended_.ok() || view_ || (welcomed_ && joining_);
  });
  if (!in_time && !welcomed_) changed_.wait_for(lock, kLastWord, [&] { return !ended_.ok(); });
  if (!ended_.ok()) return ended_;
  if (in_time) return view_ ? Status() : backends_.may_join();
  const std::string period = std::to_string(options_.init_timeout.count()) + " ms";
  if (welcomed_) {
    return Status(Code::kTimeout, "the job did not form within " + period +
                                      ": too few workers came (ELASTIC_INIT_TIMEOUT_MS)");
  }
  return Status(Code::kUnavailable, "the rendezvous server at " + identity_.address +
                                        " did not answer within " + period);
}

bool Control::joining() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !view_;
}

std::shared_ptr<const ViewSummary> Control::view() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return view_;
}

void Control::send_ready(Layout layout, std::uint64_t state_bytes) {
  asio::post(io_, [this, layout = std::move(layout), state_bytes] {
    application_.apply(layout, state_bytes);
  });
}

void Control::on_heartbeat() {
  control_thread_.check();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const TimePoint now = Clock::now();
    ++heartbeats_;
    if (now - last_heartbeat_ > kFreshHeartbeats * heartbeat_period_)
      all_read_from_ = heartbeats_ + 1;
    last_heartbeat_ = now;
  }
  changed_.notify_all();
}

Status Control::check_membership() {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool fresh = Clock::now() - last_heartbeat_ <= kFreshHeartbeats * heartbeat_period_ &&
                     heartbeats_ >= all_read_from_;
  if (!ended_.ok() || !connected_ || fresh) return ended_;
  // After a pause of the process, its first heartbeat may come before the control thread has read
  // the pending messages. The second one comes after.
  const std::uint64_t enough = heartbeats_ + 2;
  changed_.wait_for(lock, kServerAbsence, [&] { return !ended_.ok() || heartbeats_ >= enough; });
  return ended_;
}

Status Control::wait_until_member() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !ended_.ok() || view_; });
  return ended_;
}

Status Control::wait_until_ended(Milliseconds most) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, most, [&] { return !ended_.ok(); });
  return ended_;
}

void Control::set_synced() {
  const std::lock_guard<std::mutex> lock(mutex_);
  synced_ = true;
}

void Control::set_slowest(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  slowest_ = rank;
}

rendezvous::Heartbeat Control::heartbeat() const {
  rendezvous::Heartbeat heartbeat = participation_.heartbeat();
  heartbeat.commits = gate_.commits();
  heartbeat.calls = calls_.tell(*lanes_[kUnnamedLane], *lanes_[kNamedLane]);
  const std::lock_guard<std::mutex> lock(mutex_);
  heartbeat.synced = synced_;
  heartbeat.slowest = slowest_;
  return heartbeat;
}

void Control::on_message(const rendezvous::Message& message) {
  control_thread_.check();
  if (const auto* welcome = std::get_if<rendezvous::Welcome>(&message)) {
    on_welcome(*welcome);
  } else if (const auto* freeze = std::get_if<rendezvous::Freeze>(&message)) {
    if (freeze->at_commit == 0) view_change_clock_.notice(freeze->generation);
    participation_.on_freeze(*freeze);
  } else if (const auto* check = std::get_if<rendezvous::Check>(&message)) {
    participation_.on_check(*check);
  } else if (const auto* announce = std::get_if<rendezvous::Announce>(&message)) {
    application_.close();
    participation_.on_announce(announce->view);
  } else if (const auto* wait = std::get_if<rendezvous::Wait>(&message)) {
    application_.on_wait(*wait);
  } else if (const auto* farewell = std::get_if<rendezvous::Farewell>(&message)) {
    on_farewell(*farewell);
  } else if (const auto* refuse = std::get_if<rendezvous::Refuse>(&message)) {
    end(Status(Code::kRefused, refuse->reason));
  } else if (const auto* fail = std::get_if<rendezvous::Fail>(&message)) {
    end(failure_of(*fail));
  } else if (const auto* warning = std::get_if<rendezvous::Warning>(&message)) {
    log::warn("{}", warning->text);
  }
}

void Control::on_welcome(const rendezvous::Welcome& welcome) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    welcomed_ = true;
    connected_ = true;
    joining_ = welcome.joining;
    heartbeat_period_ = Milliseconds(welcome.heartbeat_ms);
    last_heartbeat_ = Clock::now();
  }
  changed_.notify_all();
  application_.on_welcome(welcome);
  participation_.on_welcome();
}

void Control::send(const rendezvous::Message& message) {
  if (const auto* report = std::get_if<rendezvous::Report>(&message)) {
    view_change_clock_.report(report->generation);
  }
  client_->send(message);
}

void Control::freeze_lanes() {
  for (const auto& lane : lanes_) lane->freeze();
}

void Control::begin_lanes_at(const std::vector<std::uint64_t>& positions) {
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i]->begin_at(positions[i]);
}

void Control::connect(const rendezvous::View& view) {
  view_change_clock_.decide(view);
  linker_->connect(peers_of(view, identity_.incarnation), view.generation, kLinkDeadline,
                   [this, view](Result<std::vector<transport::Linker::LinksOfPeer>> links) {
                     on_connected(view, std::move(links));
                   });
}

void Control::on_connected(const rendezvous::View& view,
                           Result<std::vector<transport::Linker::LinksOfPeer>> links) {
  if (links.ok()) {
    links_ = std::move(links).value();
    view_change_clock_.link();
    return participation_.on_linked(view.generation);
  }
  const Status& failure = links.status();
  log::warn("cannot link with the members of generation {}: {}", view.generation,
            failure.message());
  participation_.on_unlinkable(
      view.generation, peer_at(view, identity_.incarnation, failure.peer()), failure.message());
}

void Control::cancel_connect() {
  linker_->cancel();
}

void Control::watch_for_end(const rendezvous::Member& member) {
  linker_->watch_for_end(peer_of(member), [this, incarnation = member.incarnation] {
    participation_.on_ended(incarnation);
  });
}

void Control::forget_ends() {
  linker_->forget_ends();
}

void Control::install(const rendezvous::View& view) {
  auto summary = std::make_shared<ViewSummary>(summarise(view, identity_.incarnation));
  log::set_name("rank " + std::to_string(summary->members->rank));
  log::info("generation {}: rank {} of {}: {}", view.generation, summary->members->rank,
            summary->members->size(), view.cause);
  warn_of_forgery(*summary);
  const auto lane_views =
      assemble(view, summary->members, std::exchange(links_, {}), abort_events_, backends_);
  if (!lane_views.ok()) return end(lane_views.status());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_ = summary;
    slowest_ = -1;  // ranks name other workers now
  }
  changed_.notify_all();
  view_change_clock_.install(view.generation);
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i]->install(lane_views.value()[i]);
}

/// Warns of unencrypted data connections, once per job: on rank 0 of the first view, if the server
/// listens on loopback and thus had no reason to warn.
void Control::warn_of_forgery(const ViewSummary& first) {
  if (view() || options_.encrypt || first.members->rank != 0 || first.members->generation > 1 ||
      on_loopback(options_.bind)) {
    return;
  }
  const auto server = rendezvous::parse_address(identity_.address);
  if (!server.ok() || !on_loopback(server.value().host)) return;
  log::warn(
      "accepts data connections on {} without encryption: whoever can change what crosses the "
      "network can forge data of this job; set ELASTIC_ENCRYPT=1 and give the server --encrypt, or "
      "use a network that you trust",
      options_.bind);
}

Participation::Promise Control::propose(std::uint64_t round, std::uint64_t at_commit) {
  return gate_.propose(round, at_commit);
}

void Control::withdraw() {
  gate_.withdraw();
}

void Control::resume() {
  gate_.resume();
}

bool Control::paused_for(std::uint64_t round) const {
  return gate_.paused_for(round);
}

std::uint64_t Control::commits() const {
  return gate_.commits();
}

std::vector<std::uint64_t> Control::positions() const {
  std::vector<std::uint64_t> positions;
  for (const auto& lane : lanes_) positions.push_back(lane->position());
  return positions;
}

bool Control::synced() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return synced_;
}

void Control::on_failure(const Status& failure) {
  control_thread_.check();
  if (failure.code() == Code::kPeerLost) {
    // Collectives do not need the server; the client comes back by itself.
    log::warn("lost the rendezvous server: {}", failure.message());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      connected_ = false;
    }
    changed_.notify_all();
    return participation_.on_disconnected();
  }
  end(failure);
}

}  // namespace elastic::runtime
