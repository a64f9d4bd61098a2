#include "benchmarks/swarm/swarm_member.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "runtime/backends.hpp"

namespace elastic::bench {

namespace {

using rendezvous::Register;
using runtime::kLanes;

/// As on a machine with eight GPUs.
constexpr int kWorkersPerHost = 8;
constexpr Milliseconds kConnectDeadline{60000};

}  // namespace

SwarmMember::SwarmMember(boost::asio::io_context& io, const SwarmServer& server, int slot,
                         Observer& observer)
    : io_(io),
      slot_(slot),
      incarnation_(random_id()),
      observer_(observer),
      participation_(incarnation_, kLanes, *this),
      client_(std::make_unique<rendezvous::Client>(
          io, client_options(server),
          rendezvous::Client::Handlers{
              [this](const rendezvous::Message& message) { on_message(message); },
              [this](const Status& failure) { on_failure(failure); }})),
      positions_(kLanes, 0) {}

SwarmMember::~SwarmMember() = default;

void SwarmMember::start() {
  client_->start();
}

rendezvous::ClientOptions SwarmMember::client_options(const SwarmServer& server) {
  rendezvous::ClientOptions options;
  options.address = server.address;
  options.job = server.job;
  options.secret = server.secret;
  options.connect_deadline = kConnectDeadline;
  options.unpacking = server.unpacking;
  options.registration = [this] { return registration(); };
  options.heartbeat = [this] { return heartbeat(); };
  return options;
}

/// With names and addresses as long as those of workers in a cloud.
Register SwarmMember::registration() const {
  const int host = slot_ / kWorkersPerHost;
  const std::string address = "10." + std::to_string(host / 65536) + "." +
                              std::to_string(host / 256 % 256) + "." + std::to_string(host % 256);
  Register self;
  self.incarnation = incarnation_;
  self.pid = ::getpid();
  self.label = "slot-" + std::to_string(host) + "." + std::to_string(slot_ % kWorkersPerHost);
  self.order = slot_;
  self.endpoints.host =
      "ip-" + address + ".ec2.internal/3f1c9a52-1f0b-4c7c-9f6a-0d8f5d2b7c11/net:[4026531992]/1000";
  self.endpoints.tcp = {address + ":" + std::to_string(32768 + slot_ % 28000)};
  self.endpoints.local = "elastic-" + incarnation_;
  return participation_.registration(std::move(self));
}

rendezvous::Heartbeat SwarmMember::heartbeat() const {
  rendezvous::Heartbeat heartbeat = participation_.heartbeat();
  heartbeat.commits = commits_;
  heartbeat.synced = synced();
  heartbeat.calls.emplace(kLanes);
  return heartbeat;
}

void SwarmMember::on_message(const rendezvous::Message& message) {
  if (const auto* welcome = std::get_if<rendezvous::Welcome>(&message)) {
    on_welcome(*welcome);
  } else if (const auto* freeze = std::get_if<rendezvous::Freeze>(&message)) {
    observer_.on_frozen(freeze->round);
    participation_.on_freeze(*freeze);
  } else if (const auto* check = std::get_if<rendezvous::Check>(&message)) {
    participation_.on_check(*check);
  } else if (const auto* announce = std::get_if<rendezvous::Announce>(&message)) {
    participation_.on_announce(announce->view);
  } else if (const auto* request = std::get_if<rendezvous::ViewRequest>(&message)) {
    participation_.on_view_request(*request);
  } else if (const auto* farewell = std::get_if<rendezvous::Farewell>(&message)) {
    leave(Status(Code::kEvicted, farewell->text));
  } else if (const auto* fail = std::get_if<rendezvous::Fail>(&message)) {
    leave(Status(Code::kInternal, fail->reason));
  }
}

void SwarmMember::on_welcome(const rendezvous::Welcome& welcome) {
  if (!std::exchange(connected_, true)) observer_.on_connected(*this);
  participation_.on_welcome();
  if (welcome.joining && !std::exchange(ready_, true)) participation_.ready({});
}

void SwarmMember::on_failure(const Status& failure) {
  if (failure.code() != Code::kPeerLost) return leave(failure);
  if (std::exchange(connected_, false)) observer_.on_disconnected(*this);
  participation_.on_disconnected();
}

void SwarmMember::leave(const Status& why) {
  observer_.on_ended(*this, why);
}

/// As an event of its own, unless the worker has died by then.
void SwarmMember::later(std::function<void()> work) {
  boost::asio::post(io_, [weak = weak_from_this(), work = std::move(work)] {
    if (const auto self = weak.lock()) work();
  });
}

void SwarmMember::freeze_lanes() {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    later([this, lane] { participation_.on_quiesced(lane, {positions_[lane], {}}); });
  }
}

void SwarmMember::begin_lanes_at(const std::vector<std::uint64_t>& positions) {
  positions_ = positions;
}

void SwarmMember::connect(const rendezvous::View& view) {
  later([this, generation = view.generation] { participation_.on_linked(generation); });
}

void SwarmMember::watch_for_end(const rendezvous::Member& member) {
  later([this, incarnation = member.incarnation] {
    if (observer_.has_died(incarnation)) participation_.on_ended(incarnation);
  });
}

/// A joiner has received the state as well.
void SwarmMember::install(const rendezvous::View& view) {
  observer_.on_installed(*this, view);
  installed_ = view.generation;
  commits_ = std::max(commits_, view.commits);
  if (!std::exchange(ready_, true)) participation_.ready({});
}

runtime::Participation::Promise SwarmMember::propose(std::uint64_t round, std::uint64_t at_commit) {
  if (commits_ >= at_commit) return {false, commits_};
  proposed_round_ = round;
  later([this, round, at_commit] {
    if (proposed_round_ != round) return;
    proposed_round_ = 0;
    paused_round_ = round;
    commits_ = at_commit;
    participation_.on_paused(round);
  });
  return {true, commits_};
}

}  // namespace elastic::bench
