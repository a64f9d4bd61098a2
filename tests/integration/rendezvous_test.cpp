#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread_name.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/slot_label.hpp"
#include "rendezvous_fixture.hpp"
#include "tests/reserved_port.hpp"
#include "tests/slowness.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A launcher's connection, and how often it was told what.
struct Launcher {
  std::shared_ptr<Connection> connection;
  int limits = 0;
  int answers = 0;  // to StatusRequest
  bool ended = false;
};

class LauncherConnectionTest : public RendezvousTest {
 protected:
  /// Enlists on a connection of its own.
  std::shared_ptr<Launcher> launcher(const Enlist& its) {
    auto made = std::make_shared<Launcher>();
    const auto dialed = enter({kProtocolVersion, kJob, "launcher"});
    EXPECT_TRUE(dialed.ok());
    if (!dialed.ok()) return made;
    made->connection = dialed.value();
    asio::co_spawn(io_, listen(made),
                   [made](std::exception_ptr /*thrown*/) { made->ended = true; });
    made->connection->send(its);
    return made;
  }

 private:
  static asio::awaitable<void> listen(std::shared_ptr<Launcher> launcher) {
    while (true) {
      const Result<Message> message = co_await launcher->connection->read();
      if (!message.ok()) co_return;
      launcher->limits += std::holds_alternative<Limited>(message.value()) ? 1 : 0;
      launcher->answers += std::holds_alternative<StatusReply>(message.value()) ? 1 : 0;
    }
  }
};

TEST_F(RendezvousTest, WorkersFormAView) {
  serve(options(3));
  form(3);
  const View view = workers_[0]->view();
  EXPECT_EQ(view.generation, 1U);
  EXPECT_EQ(workers_[2]->view(), view);
}

TEST_F(RendezvousTest, ALostConnectionChangesTheView) {
  serve(options(3));
  form(3);
  const std::string gone = workers_[1]->incarnation;
  workers_.erase(workers_.begin() + 1);
  ASSERT_TRUE(eventually([&] { return all_see(2, 2); }));
  const View view = workers_[0]->view();
  EXPECT_EQ(view.lost, std::vector<std::string>{gone});
  EXPECT_THAT(view.cause, HasSubstr("connection closed"));
  EXPECT_EQ(workers_[0]->all<Freeze>().size(), 1U);
}

TEST_F(RendezvousTest, AJoinerIsAdmitted) {
  serve(options(2));
  form(2);
  for (const auto& member : workers_) member->client->send(Ready{});
  workers_.push_back(worker("joiner"));
  ASSERT_TRUE(eventually([&] { return !workers_.back()->messages.empty(); }));
  EXPECT_TRUE(workers_.back()->all<Welcome>().at(0).joining);
  workers_.back()->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return all_see(2, 3); }));
  EXPECT_EQ(workers_[0]->view().joined, std::vector<std::string>{"joiner"});
}

TEST_F(RendezvousTest, AWrongSecretIsRefusedAtOnce) {
  serve(options(1));
  ClientOptions wrong = client_options("w");
  wrong.secret = random_secret();
  const Worker stranger(io_, wrong);
  ASSERT_TRUE(eventually([&] { return !stranger.failures.empty(); }));
  EXPECT_EQ(stranger.failures[0].code(), Code::kRefused);
  EXPECT_THAT(stranger.failures[0].message(), HasSubstr("secret"));
}

TEST_F(RendezvousTest, AnotherJobIsRefused) {
  serve(options(1));
  ClientOptions wrong = client_options("w");
  wrong.job = "other-job";
  const Worker stranger(io_, wrong);
  ASSERT_TRUE(eventually([&] { return !stranger.failures.empty(); }));
  EXPECT_EQ(stranger.failures[0].code(), Code::kRefused);
  EXPECT_THAT(stranger.failures[0].message(), HasSubstr("other-job"));
  EXPECT_THAT(stranger.failures[0].message(), HasSubstr(kJob));
}

TEST_F(RendezvousTest, AnotherProtocolVersionIsRefused) {
  serve(options(1));
  const auto dialed = enter({kProtocolVersion + 1, kJob, "worker"});
  ASSERT_TRUE(dialed.ok()) << dialed.status().message();
  const Result<Message> answer = await(dialed.value()->read());
  ASSERT_TRUE(answer.ok());
  const std::string reason = std::get<Refuse>(answer.value()).reason;
  EXPECT_THAT(reason, HasSubstr("version " + std::to_string(kProtocolVersion + 1)));
  EXPECT_THAT(reason, HasSubstr("version " + std::to_string(kProtocolVersion)));
  dialed.value()->abort("done");
}

TEST_F(RendezvousTest, ANewConnectionOfAWorkerReplacesTheOld) {
  serve(options(2));
  form(2);
  const auto dialed = enter({kProtocolVersion, kJob, "worker"});
  ASSERT_TRUE(dialed.ok()) << dialed.status().message();
  Register again = client_options("w1").registration();
  again.generation = workers_[0]->view().generation;
  dialed.value()->send(again);
  const Result<Message> answer = await(dialed.value()->read());
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_FALSE(std::get<Welcome>(answer.value()).joining);
  ASSERT_TRUE(eventually([&] { return !workers_[1]->failures.empty(); }))
      << "the old one is closed";
  EXPECT_EQ(workers_[0]->view().generation, 1U);
  dialed.value()->abort("done");
}

/// The names of this process's threads, as tools such as top show them.
std::multiset<std::string> thread_names() {
  std::multiset<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream comm(task.path() / "comm");
    std::getline(comm, name);
    names.insert(name);
  }
  return names;
}

TEST_F(RendezvousTest, AnAddressNeedsNoThreadAndThatOfANameHasItsOwnName) {
  serve(options(1));
  name_this_thread("elastic-control");
  const auto before = thread_names();
  const auto dial_at = [&](const std::string& address) {
    return await(dial({address, secret_, {kProtocolVersion, kJob, "worker"}, encrypt_},
                      Milliseconds(10000)));
  };
  const auto numeric = dial_at(server_->address());
  ASSERT_TRUE(numeric.ok()) << numeric.status().message();
  EXPECT_EQ(thread_names(), before);
  const std::string address = server_->address();
  const auto named = dial_at("localhost" + address.substr(address.rfind(':')));
  ASSERT_TRUE(named.ok()) << named.status().message();
  auto expected = before;
  expected.insert("elastic-resolve");
  EXPECT_EQ(thread_names(), expected);
  numeric.value()->abort("done");
  named.value()->abort("done");
}

TEST_F(RendezvousTest, StrangersDoNoHarm) {
  ServerOptions with = options(2);
  with.handshake_deadline = kHandshakeDeadline;
  serve(with);
  form(2);
  const std::vector<std::string> openings{
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(100, 'x'), std::string(100000, '\xff'),
      std::string(100000, '[')};
  for (const std::string& opening : openings) {
    tcp::socket socket = raw();
    Error ignored;
    asio::write(socket, asio::buffer(opening), ignored);
    EXPECT_TRUE(is_closed(socket));
  }
  tcp::socket silent = raw();
  tcp::socket slow = raw();
  asio::write(slow, asio::buffer("E", 1));
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(slow));
  EXPECT_EQ(status().view.generation, 1U);
  EXPECT_TRUE(workers_[0]->failures.empty());
}

TEST_F(RendezvousTest, ADialerOfAnotherHandshakeVersionLearnsIt) {
  serve(options(1));
  tcp::socket socket = raw();
  handshake::Dialer dialer(secret_, handshake::Purpose::kControl, "{}");
  std::vector<std::byte> hello = dialer.hello();
  const std::byte ours = std::exchange(hello[4], std::byte{9});
  asio::write(socket, asio::buffer(hello));
  std::array<std::byte, handshake::kChallengeBytes> challenge{};
  asio::read(socket, asio::buffer(challenge));
  EXPECT_EQ(challenge[4], ours);
}

/// A member of the job, with the secret, that sends what is no message.
TEST_F(RendezvousTest, AMalformedMessageClosesOnlyItsConnection) {
  serve(options(1));
  form(1);
  handshake::Dialer dialer(secret_, handshake::Purpose::kControl,
                           encode_greeting({kProtocolVersion, kJob, "control"}));
  const std::string deep(100000, '[');
  FrameStart endless = frame_start(deep);
  endless.bytes = 0xFFFFFFFF;
  for (const FrameStart& announced : {endless, frame_start(deep)}) {
    tcp::socket socket = raw();
    shake_hands(socket, dialer);
    Error ignored;
    asio::write(socket, asio::buffer(encode_start(announced)), ignored);
    asio::write(socket, asio::buffer(deep), ignored);
    EXPECT_TRUE(is_closed(socket));
  }
  EXPECT_EQ(status().view.generation, 1U);
}

TEST_F(RendezvousTest, ManyIdleConnectionsKeepNoWorkerOut) {
  serve(options(2));
  std::vector<tcp::socket> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(raw());
  form(2);
  EXPECT_EQ(status().view.members.size(), 2U);
}

TEST_F(RendezvousTest, TwoHundredWorkers) {
  ServerOptions many = options(200);
  // Both ends of all connections are in this process, so it needs more time under sanitizers.
  many.membership.heartbeat *= kSlowness;
  serve(many);
  form(200);
  EXPECT_EQ(workers_[199]->view(), workers_[0]->view());
}

TEST_F(RendezvousTest, ATakenPortIsNamed) {
  serve(options(1));
  ServerOptions same = options(1);
  same.port = server_->port();
  asio::io_context io;
  Server second(io, same);
  const Status listening = second.listen();
  EXPECT_EQ(listening.code(), Code::kUnavailable);
  EXPECT_THAT(listening.message(), HasSubstr(server_->address()));
  EXPECT_THAT(listening.message(), HasSubstr("another port"));
}

TEST_F(RendezvousTest, NoServerAtTheAddressIsABoundedWait) {
  const testing::ReservedPort port;
  ClientOptions nowhere = client_options("w");
  nowhere.address = port.address();
  nowhere.connect_deadline = Milliseconds(300);
  const Worker lonely(io_, nowhere);
  ASSERT_TRUE(eventually([&] { return !lonely.failures.empty(); }));
  EXPECT_EQ(lonely.failures[0].code(), Code::kUnavailable);
  EXPECT_THAT(lonely.failures[0].message(), HasSubstr(nowhere.address));
}

TEST_F(RendezvousTest, AClientComesBackAfterALoss) {
  const testing::ReservedPort port;
  ServerOptions first = options(2);
  first.port = port.number();
  serve(first);
  workers_.push_back(worker("w"));
  ASSERT_TRUE(eventually([&] { return workers_[0]->messages.size() == 1; }));
  ServerOptions again = options(1);
  again.port = port.number();
  server_.reset();
  ASSERT_TRUE(eventually([&] { return !workers_[0]->failures.empty(); }));
  EXPECT_EQ(workers_[0]->failures[0].code(), Code::kPeerLost);
  serve(again);
  ASSERT_TRUE(eventually([&] { return all_see(1, 1); }));
  EXPECT_EQ(workers_[0]->failures.size(), 1U);
}

/// A stranger may take the port of a server that died, and a server may be started wrongly.
TEST_F(RendezvousTest, AClientThatWasWelcomedIsEndedByNoStranger) {
  const testing::ReservedPort port;
  ServerOptions mine = options(1);
  mine.port = port.number();
  serve(mine);
  workers_.push_back(worker("w"));
  ASSERT_TRUE(eventually([&] { return all_see(1, 1); }));
  server_.reset();
  const std::vector<std::string> answers{std::string(72, 'x'),
                                         std::string("\x01", 1) + std::string(71, '\0'),
                                         "HTTP/1.1 400 Bad Request\r\nContent-Length: "
                                         "200\r\nConnection: close\r\n\r\nno elastic here"};
  for (const std::string& answer : answers) {
    tcp::acceptor stranger(io_, tcp::endpoint(asio::ip::address_v4::loopback(), port.number()));
    std::optional<tcp::socket> caller;
    stranger.async_accept([&](Error error, tcp::socket socket) {
      if (!error) caller.emplace(std::move(socket));
    });
    ASSERT_TRUE(eventually([&] { return caller.has_value(); }));
    Error ignored;
    asio::write(*caller, asio::buffer(answer), ignored);
    // It turns away from the stranger, and nothing else.
    std::array<char, 1000> sent{};
    bool ended = false;
    std::function<void()> read = [&] {
      caller->async_read_some(asio::buffer(sent), [&](Error error, std::size_t) {
        error ? void(ended = true) : read();
      });
    };
    read();
    ASSERT_TRUE(eventually([&] { return ended; }));
  }
  EXPECT_EQ(workers_[0]->failures.size(), 1U) << "the loss of the first server";
  serve(mine);
  ASSERT_TRUE(eventually([&] { return workers_[0]->all<Welcome>().size() == 2; }));
  EXPECT_EQ(workers_[0]->failures.size(), 1U);
}

TEST_F(RendezvousTest, ControlRequests) {
  serve(options(2));
  form(2);
  const StatusReply now = status();
  EXPECT_EQ(now.job, kJob);
  EXPECT_EQ(now.phase, "running");
  EXPECT_EQ(now.view.members.size(), 2U);

  const auto done = [](const Result<Message>& answer) { return std::get<Done>(answer.value()); };
  const Done no_launcher = done(ask(AddRequest{1}));
  EXPECT_FALSE(no_launcher.ok);
  EXPECT_THAT(no_launcher.text, HasSubstr("no launcher is connected"));
  EXPECT_FALSE(done(ask(RemoveRequest{7})).ok);
  EXPECT_FALSE(done(ask(Heartbeat{})).ok);

  // Ranks go by arrival, which the order of the workers here does not decide.
  const std::string& removed = now.view.members.at(1).incarnation;
  const auto gone = std::find_if(workers_.begin(), workers_.end(), [&](const auto& worker) {
    return worker->incarnation == removed;
  });
  ASSERT_NE(gone, workers_.end());
  Worker& leaver = **gone;
  Worker& stayer = *workers_[gone == workers_.begin() ? 1 : 0];
  ASSERT_TRUE(done(ask(RemoveRequest{1})).ok);
  ASSERT_TRUE(eventually([&] { return !leaver.all<Farewell>().empty(); }));
  EXPECT_EQ(leaver.all<Farewell>()[0].reason, Farewell::Reason::kRemoved);
  EXPECT_TRUE(eventually([&] { return stayer.view().members.size() == 1; }));
  EXPECT_TRUE(leaver.failures.empty());

  ASSERT_TRUE(done(ask(StopRequest{})).ok);
  ASSERT_TRUE(eventually([&] { return !stayer.all<Farewell>().empty(); }));
  EXPECT_EQ(stayer.all<Farewell>()[0].reason, Farewell::Reason::kStopped);
}

TEST_F(RendezvousTest, LaunchersHearOfPhasesAndSpawns) {
  ServerOptions with = options(1);
  with.membership.max_np = 6;
  serve(with);
  const auto dialed = enter({kProtocolVersion, kJob, "launcher"});
  ASSERT_TRUE(dialed.ok());
  std::vector<Message> heard;
  const auto listen = [&]() -> asio::awaitable<void> {
    while (true) {
      Result<Message> message = co_await dialed.value()->read();
      if (!message.ok()) co_return;
      heard.push_back(std::move(message).value());
    }
  };
  bool ended = false;
  asio::co_spawn(io_, listen, [&](std::exception_ptr /*thrown*/) { ended = true; });
  ASSERT_TRUE(eventually([&] { return heard.size() == 2; }));
  EXPECT_EQ(std::get<JobState>(heard[0]).phase, "forming");
  EXPECT_EQ(std::get<Spawn>(heard[1]).total, 0);
  form(1);
  ASSERT_TRUE(eventually([&] { return heard.size() == 3; }));
  EXPECT_EQ(std::get<JobState>(heard[2]).phase, "running");
  EXPECT_FALSE(std::get<JobState>(heard[2]).joinable);
  EXPECT_FALSE(std::get<Done>(ask(AddRequest{2}).value()).ok) << "no worker can join";
  workers_[0]->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return heard.size() == 4; }));
  EXPECT_TRUE(std::get<JobState>(heard[3]).joinable);
  for (const int asked : {1, 2}) {
    EXPECT_TRUE(std::get<Done>(ask(AddRequest{2}).value()).ok);
    ASSERT_TRUE(eventually([&] { return heard.size() == 4U + static_cast<std::size_t>(asked); }));
    EXPECT_EQ(std::get<Spawn>(heard.back()).total, 2 * asked);
  }
  const Done too_many = std::get<Done>(ask(AddRequest{6}).value());
  EXPECT_FALSE(too_many.ok);
  EXPECT_THAT(too_many.text, HasSubstr("at most 6 (--max-np)"));
  dialed.value()->abort("done");
  EXPECT_TRUE(eventually([&] { return ended; }));
}

/// A worker that leaves meanwhile is no reason to wait for a further replacement.
TEST_F(RendezvousTest, AHostIsDrainedOnceReplacementsHaveCome) {
  serve(options(2));
  form(2);
  for (const auto& member : workers_) member->client->send(Ready{});
  const auto drained = enter({kProtocolVersion, kJob, "launcher"});
  const auto other = enter({kProtocolVersion, kJob, "launcher"});
  ASSERT_TRUE(drained.ok() && other.ok());
  drained.value()->send(Enlist{.id = "a", .host = "full", .slots = 1, .running = 1});
  other.value()->send(Enlist{.id = "b", .host = "free", .slots = 1});
  ASSERT_TRUE(eventually([&] { return status().joinable && status().launchers->size() == 2; }));
  bool limited = false;
  const auto listen = [&]() -> asio::awaitable<void> {
    while (true) {
      const Result<Message> message = co_await drained.value()->read();
      if (!message.ok()) co_return;
      limited |= std::holds_alternative<Limited>(message.value());
    }
  };
  bool ended = false;
  asio::co_spawn(io_, listen, [&](std::exception_ptr /*thrown*/) { ended = true; });
  // In a view change that has been asked for, too.
  workers_[1]->answers = false;
  EXPECT_TRUE(std::get<Done>(ask(RemoveRequest{1}).value()).ok);
  EXPECT_EQ(status().phase, "changing");
  const Done done = std::get<Done>(ask(LimitRequest{"full", 0, 3600000}).value());
  EXPECT_THAT(done.text, HasSubstr("after 1 have come elsewhere"));
  workers_.pop_back();
  ASSERT_TRUE(eventually([&] { return all_see(2, 1); }));
  EXPECT_FALSE(limited);
  workers_.push_back(worker("replacement"));
  EXPECT_TRUE(eventually([&] { return limited; }));
  drained.value()->abort("done");
  EXPECT_TRUE(eventually([&] { return ended; }));
}

/// A message on a connection that is about to break may not arrive.
TEST_F(LauncherConnectionTest, ALauncherThatComesBackIsToldItsLimitAgainUntilItHasSaidSo) {
  serve(options(1));
  form(1);
  const Enlist numbers{.id = "a", .host = "h", .slots = 1};
  const auto connected = [&] { return status().launchers->front().connected; };
  const auto disconnect = [&](const std::shared_ptr<Launcher>& its) {
    its->connection->abort("the network fails");
    ASSERT_TRUE(eventually([&] { return its->ended && !connected(); }));
  };
  const auto first = launcher(numbers);
  ASSERT_TRUE(eventually([&] { return !status().launchers->empty(); }));
  EXPECT_TRUE(std::get<Done>(ask(LimitRequest{"h", 0, {}}).value()).ok);
  ASSERT_TRUE(eventually([&] { return first->limits == 1; }));
  disconnect(first);
  const auto second = launcher(numbers);
  ASSERT_TRUE(eventually([&] { return second->limits == 1; })) << "it has not said that it knows";
  EXPECT_EQ(status().launchers->front().slots, 0);
  disconnect(second);
  Enlist limited = numbers;
  limited.slots = 0;
  const auto third = launcher(limited);
  third->connection->send(StatusRequest{});
  ASSERT_TRUE(eventually([&] { return third->answers == 1; }));
  EXPECT_EQ(third->limits, 0) << "a limit would have come before the answer";
  EXPECT_EQ(status().launchers->front().slots, 0);
  disconnect(third);
}

/// The workers of a host that was drained before may be members until their next step boundary.
TEST_F(RendezvousTest, WorkersThatAreToLeaveAreNotCountedForAnotherDrain) {
  serve(options(3));
  std::vector<std::shared_ptr<Connection>> launchers;
  for (const std::string host : {"h1", "h2", "h3"}) {
    const auto dialed = enter({kProtocolVersion, kJob, "launcher"});
    ASSERT_TRUE(dialed.ok());
    launchers.push_back(dialed.value());
    launchers.back()->send(Enlist{.id = host, .host = host, .slots = 1, .running = 1});
    ASSERT_TRUE(eventually([&] { return status().launchers->size() == launchers.size(); }));
  }
  for (int launcher = 0; launcher < 3; ++launcher) {
    ClientOptions with = client_options("w" + std::to_string(launcher));
    Register registration = with.registration();
    registration.label = slot_label({launcher, 0});
    with.registration = [registration] { return registration; };
    workers_.push_back(std::make_unique<Worker>(io_, with));
  }
  ASSERT_TRUE(eventually([&] { return all_see(1, 3); }));
  for (const auto& member : workers_) {
    member->client->send(Ready{});
    member->answers = false;  // no step boundary comes
  }
  ASSERT_TRUE(eventually([&] { return status().joinable; }));
  const auto done = [](const Result<Message>& answer) { return std::get<Done>(answer.value()); };
  EXPECT_TRUE(done(ask(LimitRequest{"h1", 0, {}})).ok);
  EXPECT_TRUE(done(ask(LimitRequest{"h2", 0, {}})).ok);
  const Done last = done(ask(LimitRequest{"h3", 0, {}}));
  EXPECT_FALSE(last.ok);
  EXPECT_EQ(last.text,
            "cannot drain host h3: 0 workers would be left, min_np is 1; leaving already: 1 of h1, "
            "1 of h2");
  EXPECT_TRUE(done(ask(LimitRequest{"h2", 0, {}})).ok) << "again: that takes no further worker";
  const auto remove = [&](int launcher) {
    return done(ask(RemoveRequest{0, slot_label({launcher, 0})}));
  };
  EXPECT_THAT(remove(2).text, HasSubstr("0 workers would be left, min_np is 1; leaving already: "));
  EXPECT_TRUE(remove(0).ok);
  EXPECT_TRUE(remove(1).ok);
  const auto unknown = slot_label({7, 0});
  EXPECT_EQ(done(ask(RemoveRequest{0, unknown})).text, "no member has the label " + unknown);
  EXPECT_FALSE(done(ask(RemoveRequest{0, unknown})).ok);
  std::optional<Done> told;
  asio::co_spawn(
      io_,
      [peer = launchers[0], &told]() -> asio::awaitable<void> {
        while (!told) {
          const Result<Message> message = co_await peer->read();
          if (!message.ok()) co_return;
          if (const auto* reply = std::get_if<Done>(&message.value())) told = *reply;
        }
      },
      asio::detached);
  launchers[0]->send(RemoveRequest{0, unknown});
  ASSERT_TRUE(eventually([&] { return told.has_value(); }));
  EXPECT_TRUE(told->ok) << "its worker has left, or is about to join: " << told->text;
  for (const auto& launcher : launchers) launcher->abort("done");
}

/// As agents in containers. A launcher's own request, on a signal or a notice, has its number.
TEST_F(LauncherConnectionTest, HostsOfOneNameAreDrainedOneByOne) {
  serve(options(1));
  form(1);
  std::vector<std::shared_ptr<Launcher>> launchers;
  for (int number = 0; number < 3; ++number) {
    launchers.push_back(launcher({.id = "id-" + std::to_string(number), .host = "vm", .slots = 1}));
    ASSERT_TRUE(eventually([&] { return status().launchers->size() == launchers.size(); }));
  }
  const auto done = [](const Result<Message>& answer) { return std::get<Done>(answer.value()); };
  const Done refused = done(ask(LimitRequest{"vm", 0, {}}));
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.text, "3 hosts are called vm: drain one by its number: 0, 1, 2");
  EXPECT_THAT(done(ask(LimitRequest{"1", 0, {}})).text, HasSubstr("the host vm (number 1)"));
  ASSERT_TRUE(eventually([&] { return launchers[1]->limits == 1; }));
  launchers[2]->connection->send(LimitRequest{"2", 0, {}});
  ASSERT_TRUE(eventually([&] { return launchers[2]->limits == 1; }));
  EXPECT_EQ(launchers[0]->limits, 0);
  EXPECT_EQ(launchers[1]->limits, 1);
  EXPECT_EQ(status().launchers->at(0).slots, 1);
  for (const auto& each : launchers) each->connection->abort("done");
  EXPECT_TRUE(eventually([&] {
    return std::ranges::all_of(launchers, [](const auto& each) { return each->ended; });
  }));
}

/// On another host, where the server cannot see it, and with no member there to ask.
TEST_F(RendezvousTest, ALauncherProvesTheEndOfItsWorker) {
  ServerOptions with = options(2);
  with.membership.disconnect_grace = std::chrono::hours(1);
  serve(with);
  workers_.push_back(worker("w0"));
  ClientOptions away = client_options("w1");
  Register registration = away.registration();
  registration.endpoints.host = "elsewhere";
  registration.pid = 77;
  registration.label = "slot-1.0";
  away.registration = [registration] { return registration; };
  workers_.push_back(std::make_unique<Worker>(io_, away));
  ASSERT_TRUE(eventually([&] { return all_see(1, 2); }));
  workers_.pop_back();
  const auto dialed = enter({kProtocolVersion, kJob, "launcher"});
  ASSERT_TRUE(dialed.ok());
  dialed.value()->send(Enlist{.id = "agent", .host = "elsewhere", .slots = 1});
  dialed.value()->send(WorkerEnded{1, "slot-1.0", "", 78});
  EXPECT_EQ(status().view.members.size(), 2U) << "another process that had the label";
  dialed.value()->send(WorkerEnded{2, "slot-1.0", "", 77});
  EXPECT_TRUE(eventually([&] { return all_see(2, 1); }));
  EXPECT_THAT(workers_[0]->view().cause, HasSubstr("its launcher saw its process end"));
  dialed.value()->abort("done");
}

TEST_F(RendezvousTest, ViewsAreInTheJournalBeforeTheyAreAnnounced) {
  ServerOptions with = options(2);
  with.journal = ::testing::TempDir() + "/" + random_id() + ".journal";
  serve(with);
  form(2);
  std::ifstream file(with.journal);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("\"generation\":1"));
  EXPECT_THAT(text, HasSubstr("{\"xxh64\":\""));
  EXPECT_EQ(text.at(text.find_last_not_of('\0')), '\n');
  std::remove(with.journal.c_str());
}

TEST_F(RendezvousTest, ServesIPv6) {
  ServerOptions with = options(1);
  with.bind = "::1";
  server_.emplace(with);
  ASSERT_TRUE(server_->listening().ok()) << server_->listening().message();
  EXPECT_THAT(server_->address(), HasSubstr("[::1]:"));
  form(1);
}

/// Standbys do not listen.
TEST_F(RendezvousTest, AWorkerFindsTheServerThatLeadsAmongSeveral) {
  serve(options(1));
  const ::elastic::testing::ReservedPort standby;
  ClientOptions several = client_options("w0");
  several.address = standby.address() + "," + server_->address() + "," + standby.address();
  workers_.push_back(std::make_unique<Worker>(io_, std::move(several)));
  EXPECT_TRUE(eventually([&] { return all_see(1, 1); }));
}

/// The connection to the first one stands, as that of a server that hangs does.
TEST_F(RendezvousTest, AWorkerGoesToTheServerThatTookOver) {
  serve(options(1));
  const ::elastic::testing::ReservedPort standby;
  ClientOptions several = client_options("w0");
  several.address = server_->address() + "," + standby.address();
  workers_.push_back(std::make_unique<Worker>(io_, std::move(several)));
  ASSERT_TRUE(eventually([&] { return all_see(1, 1); }));
  ServerOptions with = options(1);
  with.port = standby.number();
  const RunningServer successor(with);
  ASSERT_TRUE(successor.listening().ok()) << successor.listening().message();
  EXPECT_TRUE(eventually([&] { return !workers_.front()->failures.empty(); }));
  EXPECT_THAT(workers_.front()->failures.front().message(),
              HasSubstr("the server at " + standby.address() + " leads now"));
}

TEST(Address, TakesAListApart) {
  EXPECT_THAT(parse_addresses("a:1,[::1]:2").value(), ElementsAre("a:1", "[::1]:2"));
  for (const char* bad : {"", ",", "a:1,", ",a:1", "a:1,,b:2", "a:1 b:2", "a:1,b"}) {
    EXPECT_EQ(parse_addresses(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST(Address, TakesApart) {
  EXPECT_EQ(parse_address("[::1]:80").value().host, "::1");
  EXPECT_EQ(parse_address("localhost:80").value().port, "80");
  for (const char* bad : {"", "host", "host:", ":80", "::1:80", "host:x", "host:70000", "[]:1"}) {
    EXPECT_EQ(parse_address(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace elastic::rendezvous
