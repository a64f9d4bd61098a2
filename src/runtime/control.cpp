#include "runtime/control.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "runtime/view_assembly.hpp"

namespace elastic::runtime {

namespace asio = boost::asio;

namespace {

/// A peer that does not answer within this is reported; the server decides what becomes of it.
constexpr Milliseconds kLinkDeadline{5000};
/// The client gives up at the same time as `start`, and it can say why.
constexpr Milliseconds kLastWord{500};
/// How long `leave` waits for the others: a job's members end within moments of each other, or the
/// server counts this one as a leaver.
constexpr Milliseconds kFarewellDeadline{30000};

transport::LinkerOptions linker_options(const Identity& identity, const Options& options) {
  transport::LinkerOptions linker;
  linker.job = identity.job;
  linker.secret = identity.secret;
  linker.incarnation = identity.incarnation;
  linker.choice = options.transport == "shm"   ? transport::Choice::kShm
                  : options.transport == "tcp" ? transport::Choice::kTcp
                                               : transport::Choice::kAuto;
  linker.bind_address = options.bind;
  linker.streams = options.tcp_streams;
  linker.lanes = static_cast<int>(kLanes);
  linker.shm_ring_bytes = options.shm_ring_bytes;
  return linker;
}

}  // namespace

Control::Control(Identity identity, Options options)
    : identity_(std::move(identity)),
      options_(std::move(options)),
      gate_([this](std::uint64_t round) { asio::post(io_, [this, round] { on_paused(round); }); }) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    coordinator::Lane::Callbacks callbacks;
    callbacks.on_quiet = [this, i](std::uint64_t position, std::string needs) {
      asio::post(io_, [this, i, quiet = Quiet{position, std::move(needs)}]() mutable {
        on_quiet(i, std::move(quiet));
      });
    };
    callbacks.on_suspect = [this](std::uint64_t generation, std::string incarnation,
                                  std::string reason) {
      asio::post(io_, [this, suspect = rendezvous::Suspect{generation, std::move(incarnation),
                                                           std::move(reason)}] {
        client_->send(suspect);
      });
    };
    lanes_[i] = std::make_unique<coordinator::Lane>("lane " + std::to_string(i), callbacks);
  }
  // A lane is quiet until its first view.
  quiet_.fill(Quiet{});
}

Control::~Control() {
  close();
  if (thread_.joinable()) {
    asio::post(io_, [this] {
      client_->close();
      linker_->close();
      work_.reset();
    });
    thread_.join();
  }
  lanes_ = {};
}

Status Control::start() {
  linker_ = std::make_unique<transport::Linker>(io_, linker_options(identity_, options_));
  if (Status listening = linker_->listen(); !listening.ok()) return listening;

  rendezvous::ClientOptions client;
  client.address = identity_.address;
  client.job = identity_.job;
  client.secret = identity_.secret;
  client.connect_deadline = options_.init_timeout;
  client.registration.incarnation = identity_.incarnation;
  client.registration.endpoints = to_rendezvous(linker_->endpoints());
  client.registration.pid = ::getpid();
  client.registration.label = options_.label;
  client.registration.order = options_.slot;
  client_ = std::make_unique<rendezvous::Client>(
      io_, std::move(client),
      rendezvous::Client::Handlers{
          [this](rendezvous::Message message) { on_message(std::move(message)); },
          [this](const Status& failure) { on_failure(failure); }});
  client_->start();
  work_.emplace(io_.get_executor());
  thread_ = std::thread([this] { io_.run(); });

  std::unique_lock<std::mutex> lock(mutex_);
  const bool in_time = changed_.wait_for(lock, options_.init_timeout, [&] {
    return !ended_.ok() || view_ || (welcomed_ && joining_);
  });
  if (!in_time && !welcomed_) changed_.wait_for(lock, kLastWord, [&] { return !ended_.ok(); });
  if (!ended_.ok()) return ended_;
  if (in_time) return {};
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

void Control::send_ready(rendezvous::Layout layout) {
  asio::post(io_, [this, ready = rendezvous::Ready{std::move(layout)}] { client_->send(ready); });
}

Status Control::wait_until_member() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !ended_.ok() || view_; });
  return ended_;
}

void Control::set_synced() {
  const std::lock_guard<std::mutex> lock(mutex_);
  synced_ = true;
}

void Control::leave(bool done) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_.ok() || !connected_) return;
  }
  asio::post(io_, [this, done] { client_->send(rendezvous::Bye{done}); });
  if (!done) return;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, kFarewellDeadline,
                    [&] { return farewell_ || !ended_.ok() || !connected_; });
}

void Control::close() {
  end(Status(Code::kNotInitialized, "elastic::shutdown was called"));
}

void Control::on_message(rendezvous::Message message) {
  control_thread_.check();
  if (const auto* welcome = std::get_if<rendezvous::Welcome>(&message)) {
    on_welcome(*welcome);
  } else if (const auto* freeze = std::get_if<rendezvous::Freeze>(&message)) {
    on_freeze(*freeze);
  } else if (const auto* announce = std::get_if<rendezvous::Announce>(&message)) {
    on_announce(*announce);
  } else if (const auto* farewell = std::get_if<rendezvous::Farewell>(&message)) {
    on_farewell(*farewell);
  } else if (const auto* refuse = std::get_if<rendezvous::Refuse>(&message)) {
    end(Status(Code::kRefused, refuse->reason));
  } else if (const auto* fail = std::get_if<rendezvous::Fail>(&message)) {
    end(Status(Code::kBelowMinimum, fail->reason));
  }
}

void Control::on_welcome(const rendezvous::Welcome& welcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  welcomed_ = true;
  connected_ = true;
  joining_ = welcome.joining;
  changed_.notify_all();
}

void Control::on_freeze(const rendezvous::Freeze& freeze) {
  if (freeze.generation != generation_) return;  // of a view that this worker was never in
  if (freeze.at_commit > 0) {
    report_round_ = 0;
    deferred_round_ = freeze.round;
    // Stopped for an earlier round of this view: that one is void. Stopped for a view that is being
    // installed: goes on then.
    if (!frozen_) gate_.resume();
    const CommitGate::Promise promise = gate_.propose(freeze.round, freeze.at_commit);
    client_->send(rendezvous::Promise{freeze.round, promise.accepted, promise.commits});
    return;
  }
  log::get().info("view change: {}", freeze.reason);
  linker_->cancel();
  pending_.reset();
  gate_.withdraw();
  deferred_round_ = 0;
  report_round_ = freeze.round;
  freeze_lanes();
  go_on_when_quiet();
}

void Control::freeze_lanes() {
  if (frozen_) return;
  frozen_ = true;
  quiet_.fill(std::nullopt);
  for (const auto& lane : lanes_) lane->freeze();
}

void Control::on_quiet(std::size_t lane, Quiet quiet) {
  control_thread_.check();
  if (!frozen_) return;  // from a freeze that has been answered since
  quiet_[lane] = std::move(quiet);
  go_on_when_quiet();
}

/// With all lanes quiet: answers the freeze, or goes on into the announced view.
void Control::go_on_when_quiet() {
  if (!std::all_of(quiet_.begin(), quiet_.end(),
                   [](const auto& quiet) { return quiet.has_value(); })) {
    return;
  }
  if (report_round_ != 0) {
    send_report(std::exchange(report_round_, 0), {*quiet_[0], *quiet_[1]});
  } else if (pending_ && !pending_->linking) {
    link();
  }
}

void Control::send_report(std::uint64_t round, std::array<Quiet, kLanes> lanes) {
  rendezvous::Report report;
  report.generation = generation_;
  report.round = round;
  for (const Quiet& lane : lanes) report.lanes.push_back({lane.position, lane.needs});
  report.commits = gate_.commits();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    report.synced = synced_;
  }
  client_->send(report);
}

/// The training thread has stopped at the step boundary that was asked for: its lanes are idle.
void Control::on_paused(std::uint64_t round) {
  control_thread_.check();
  if (!gate_.paused_for(round) || frozen_) return;
  send_report(round, {Quiet{lanes_[0]->position(), {}}, Quiet{lanes_[1]->position(), {}}});
}

void Control::on_announce(const rendezvous::Announce& announce) {
  const auto& members = announce.view.members;
  const bool member = std::any_of(members.begin(), members.end(), [&](const auto& one) {
    return one.incarnation == identity_.incarnation;
  });
  if (!member || announce.view.generation <= generation_) return;
  if (announce.view.lanes.size() != kLanes) {
    return end(Status(Code::kProtocol, "the rendezvous server announced a view of " +
                                           std::to_string(announce.view.lanes.size()) +
                                           " lanes; this release has " + std::to_string(kLanes)));
  }
  if (generation_ == 0) {
    // A freeze before this view is installed must not be answered as if nothing had been done yet.
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t position = announce.view.lanes[i].position;
      lanes_[i]->begin_at(position);
      quiet_[i] = Quiet{position, {}};
    }
  }
  generation_ = announce.view.generation;
  report_round_ = 0;
  deferred_round_ = 0;
  gate_.withdraw();
  linker_->cancel();
  pending_ = Pending{announce.view, false};
  freeze_lanes();
  go_on_when_quiet();
}

void Control::link() {
  pending_->linking = true;
  std::vector<transport::Peer> peers = peers_of(pending_->view, identity_.incarnation);
  const std::uint64_t generation = generation_;
  linker_->connect(std::move(peers), generation, kLinkDeadline,
                   [this, generation](Result<std::vector<transport::Linker::LinksOfPeer>> links) {
                     if (generation != generation_ || !pending_) return;
                     if (links.ok()) {
                       install(pending_->view, std::move(links).value());
                       return;
                     }
                     const Status failure = links.status();
                     log::get().warn("cannot link with the members of generation {}: {}",
                                     generation, failure.message());
                     client_->send(rendezvous::Suspect{
                         generation, peer_at(pending_->view, identity_.incarnation, failure.peer()),
                         failure.message()});
                   });
}

void Control::install(const rendezvous::View& view,
                      std::vector<transport::Linker::LinksOfPeer> links) {
  auto summary = std::make_shared<ViewSummary>(summarise(view, identity_.incarnation));
  log::set_name("rank " + std::to_string(summary->members->rank));
  log::get().info("generation {}: rank {} of {}: {}", view.generation, summary->members->rank,
                  summary->members->size(), view.cause);
  std::vector<std::shared_ptr<coordinator::LaneView>> lane_views =
      assemble(view, summary->members, links, options_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_ = summary;
  }
  changed_.notify_all();
  frozen_ = false;
  pending_.reset();
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i]->install(lane_views[i]);
  if (deferred_round_ != 0 && gate_.paused_for(deferred_round_)) {
    on_paused(deferred_round_);  // stopped for a boundary of this view while it was being installed
  } else {
    gate_.resume();
  }
}

void Control::on_farewell(const rendezvous::Farewell& farewell) {
  using Reason = rendezvous::Farewell::Reason;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    farewell_ = true;
  }
  changed_.notify_all();
  switch (farewell.reason) {
    case Reason::kDone:
      return end(Status(Code::kDone, "the job is done"));
    case Reason::kRemoved:
      return end(Status(Code::kRemoved, "this worker was asked to leave the job"));
    case Reason::kStopped:
      return end(Status(Code::kStopped, "the job was asked to stop"));
    case Reason::kEvicted:
      return end(Status(Code::kEvicted, "the job went on without this worker: " + farewell.text));
  }
}

void Control::on_failure(const Status& failure) {
  control_thread_.check();
  if (failure.code() == Code::kPeerLost) {
    // Collectives do not need the server; the client comes back by itself.
    log::get().warn("lost the rendezvous server: {}", failure.message());
    const std::lock_guard<std::mutex> lock(mutex_);
    connected_ = false;
    changed_.notify_all();
    return;
  }
  end(failure);
}

/// Nothing more happens for this worker, and that is why.
void Control::end(const Status& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.ok()) ended_ = reason;
  }
  changed_.notify_all();
  gate_.close(reason);
  for (const auto& lane : lanes_) lane->close(reason);
}

}  // namespace elastic::runtime
