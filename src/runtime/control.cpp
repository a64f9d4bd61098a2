#include "runtime/control.hpp"

#include <unistd.h>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "base/ticks.hpp"
#include "base/training_figures.hpp"
#include "runtime/worker_figures.hpp"

namespace elastic::runtime {

namespace asio = boost::asio;

namespace {

/// People look at them; a heartbeat without them is a third as long.
constexpr Milliseconds kBetweenFigures{2000};

}  // namespace

Control::Control(Identity identity, Options options, const Backends& backends,
                 const StepClock& step_clock, std::shared_ptr<const transport::Arena> arena,
                 timeline::Timeline& timeline)
    : identity_(std::move(identity)),
      options_(std::move(options)),
      backends_(backends),
      step_clock_(step_clock),
      timeline_(timeline),
      arena_(std::move(arena)),
      gate_([this](std::uint64_t round) {
        asio::post(io_, [this, round] { participation_.on_paused(round); });
      }),
      effects_({identity_, options_, backends_, gate_, status_, view_change_clock_, timeline_,
                lanes_, abort_events_, [this](const Status& why) { leave_with_error(why, true); }}),
      participation_(identity_.incarnation, kLanes, effects_),
      join_request_(
          io_,
          [this](const rendezvous::Member& donor, Milliseconds deadline,
                 const JoinRequest::Measured& measured) {
            linker_->probe(peer_of(donor), deadline, measured);
          },
          [this](const rendezvous::Ready& ready) { participation_.ready(ready); }) {
  const auto spare = std::make_shared<collectives::SpareBuffer>();
  for (std::size_t i = 0; i < kLanes; ++i) {
    lanes_[i] = std::make_unique<coordinator::Lane>("lane " + std::to_string(i), lane_callbacks(i),
                                                    spare, &timeline_, i);
    abort_events_[i] = std::make_shared<EventFd>();
  }
}

coordinator::Lane::Callbacks Control::lane_callbacks(std::size_t lane) {
  coordinator::Lane::Callbacks callbacks;
  callbacks.on_quiesced = [this, lane](std::uint64_t position, std::string needs) {
    asio::post(io_, [this, lane, where = Participation::Lane{position, std::move(needs)}] {
      participation_.on_quiesced(lane, where);
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
  callbacks.on_leave = [this](const Status& why) { leave_with_error(why); };
  return callbacks;
}

Control::~Control() {
  stop();
  flight_log_.finish();
  lanes_ = {};
}

void Control::stop() {
  close();
  if (thread_.joinable()) {
    asio::post(io_, [this] {
      join_request_.close();
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
  transport::LinkerOptions linker = linker_options(identity_, options_, arena_);
  linker.on_short = [this](const Status& why) { leave_with_error(why, true); };
  linker_ = std::make_unique<transport::Linker>(io_, std::move(linker));
  if (Status listening = linker_->listen(); !listening.ok()) return listening;

  client_ = std::make_unique<rendezvous::Client>(
      io_, client_options(),
      rendezvous::Client::Handlers{
          [this](const rendezvous::Message& message) { on_message(message); },
          [this](const Status& failure) { on_failure(failure); }});
  effects_.connect_to(*client_, *linker_, participation_);
  client_->start();
  work_.emplace(io_.get_executor());
  thread_ = std::thread([this] {
    name_this_thread("elastic-control");
    io_.run();
  });

  const Result<bool> member = status_.wait_until_welcome(options_.init_timeout, identity_.address);
  if (!member.ok()) return member.status();
  return member.value() ? Status() : backends_.may_join();
}

rendezvous::ClientOptions Control::client_options() {
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
    self.all_linked = static_cast<std::uint64_t>(options_.all_linked);
    if (backends_.abort_waits_for_peers()) self.end_if_silent = true;
    return participation_.registration(std::move(self));
  };
  client.heartbeat = [this] {
    on_heartbeat();
    return heartbeat();
  };
  return client;
}

void Control::send_ready(Layout layout, std::uint64_t state_bytes) {
  asio::post(io_, [this, layout = std::move(layout), state_bytes] {
    join_request_.apply(layout, state_bytes);
  });
}

void Control::on_heartbeat() {
  control_thread_.check();
  status_.on_heartbeat();
  const std::int64_t now = ticks();
  for (const auto& lane : lanes_) lane->trace().note_time(now);
}

rendezvous::Heartbeat Control::heartbeat() {
  rendezvous::Heartbeat heartbeat = participation_.heartbeat();
  heartbeat.commits = gate_.commits();
  const auto summary = view();
  heartbeat.calls = calls_.present_calls(*lanes_[kUnnamedLane], *lanes_[kNamedLane],
                                         summary ? summary->members.get() : nullptr);
  heartbeat.synced = status_.synced();
  heartbeat.slowest = status_.slowest();
  if (const TimePoint now = Clock::now(); now >= figures_due_) {
    figures_due_ = now + kBetweenFigures;
    heartbeat.figures =
        worker_figures(now - began_, step_clock_.times(), view_change_clock_.resumed(),
                       linker_->traffic(), training_figures());
  }
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
    join_request_.close();
    participation_.on_announce(announce->view);
  } else if (const auto* request = std::get_if<rendezvous::ViewRequest>(&message)) {
    participation_.on_view_request(*request);
  } else if (const auto* wait = std::get_if<rendezvous::Wait>(&message)) {
    join_request_.on_wait(*wait);
  } else if (const auto* farewell = std::get_if<rendezvous::Farewell>(&message)) {
    on_farewell(*farewell);
  } else if (const auto* refuse = std::get_if<rendezvous::Refuse>(&message)) {
    effects_.end(Status(Code::kRefused, refuse->reason));
  } else if (const auto* fail = std::get_if<rendezvous::Fail>(&message)) {
    end_in_error(failure_of(*fail));
  } else if (const auto* warning = std::get_if<rendezvous::Warning>(&message)) {
    log::warn("{}", warning->text);
  } else if (const auto* dump = std::get_if<rendezvous::DumpRequest>(&message)) {
    flight_log_.write_later(dump->reason);
  }
}

void Control::on_welcome(const rendezvous::Welcome& welcome) {
  if (std::exchange(without_server_, false)) log::warn("the rendezvous server is back");
  status_.on_welcome(welcome);
  join_request_.on_welcome(welcome);
  participation_.on_welcome();
}

void Control::on_failure(const Status& failure) {
  control_thread_.check();
  if (failure.code() == Code::kPeerLost) {
    // Collectives do not need the server; the client comes back by itself.
    log::warn("lost the rendezvous server: {}", failure.message());
    without_server_ = true;
    status_.on_disconnected();
    return participation_.on_disconnected();
  }
  effects_.end(failure);
}

}  // namespace elastic::runtime
