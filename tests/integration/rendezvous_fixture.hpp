#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/handshake.hpp"
#include "base/host_identity.hpp"
#include "rendezvous/client/client.hpp"
#include "rendezvous/client/control_client.hpp"
#include "rendezvous/client/dial.hpp"
#include "rendezvous/server/server.hpp"
#include "tests/slowness.hpp"

namespace elastic::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

inline constexpr auto kSoon = std::chrono::seconds(50) * kHangFactor;
/// For tests of incomplete handshakes. All others end in time on a loaded machine, too.
inline constexpr Milliseconds kHandshakeDeadline = Milliseconds(2000) * kHangFactor;
inline constexpr const char* kJob = "test-job";

/// A server on a thread of its own.
class RunningServer {
 public:
  explicit RunningServer(ServerOptions options) : server_(io_, std::move(options)) {
    listening_ = server_.listen();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~RunningServer() {
    asio::post(io_, [this] {
      server_.close();
      guard_.reset();
    });
    thread_.join();
  }
  const Status& listening() const { return listening_; }
  std::string address() const { return server_.address(); }
  std::uint16_t port() const {
    return static_cast<std::uint16_t>(std::stoi(parse_address(address()).value().port));
  }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  Server server_;
  Status listening_;
  std::thread thread_;
};

/// A worker without a data plane: answers every freeze at once.
class Worker {
 public:
  Worker(asio::io_context& io, ClientOptions options)
      : incarnation(options.registration().incarnation) {
    options.registration = [this, registration = options.registration()]() mutable {
      if (view().generation != 0) registration.generation = view().generation;
      return registration;
    };
    client.emplace(io, std::move(options),
                   Client::Handlers{[this](Message message) { take(std::move(message)); },
                                    [this](Status status) { failures.push_back(status); }});
    client->start();
  }

  template <typename T>
  std::vector<T> all() const {
    std::vector<T> result;
    for (const Message& message : messages) {
      if (const auto* wanted = std::get_if<T>(&message)) result.push_back(*wanted);
    }
    return result;
  }
  /// The newest view, or an empty one.
  const View& view() const {
    static const View kNone;
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      if (const auto* announced = std::get_if<Announce>(&*message)) return *announced->view;
    }
    return kNone;
  }

  std::string incarnation;
  std::vector<Message> messages;
  std::vector<Status> failures;
  std::optional<Client> client;
  bool answers = true;  ///< freezes

 private:
  void take(Message message) {
    if (std::holds_alternative<ViewRequest>(message)) {
      client->send(KnownView{std::make_shared<const View>(view())});
    }
    const auto* freeze = std::get_if<Freeze>(&message);
    if (freeze != nullptr && answers) {
      if (freeze->at_commit > 0) {
        commits_ = freeze->at_commit;
        client->send(Promise{freeze->round, true, commits_});
        client->send(Paused{freeze->round, commits_});
      } else {
        Report report{freeze->generation, freeze->round, {}, commits_, true, commits_ > 0};
        report.lanes.resize(view().lanes.size());
        client->send(report);
      }
    }
    messages.push_back(std::move(message));
  }

  std::uint64_t commits_ = 0;  // when its training thread stopped last
};

class RendezvousTest : public ::testing::Test {
 protected:
  ServerOptions options(int np) const {
    ServerOptions result;
    result.job = kJob;
    result.secret = secret_;
    result.encrypt = encrypt_;
    result.membership.initial_np = np;
    // The machine may be loaded; no test here is about silence.
    result.membership.evict_after = Milliseconds(20000);
    result.membership.report_window = Milliseconds(20000);
    return result;
  }

  void serve(const ServerOptions& with) {
    server_.emplace(with);
    ASSERT_TRUE(server_->listening().ok()) << server_->listening().message();
  }

  ClientOptions client_options(const std::string& incarnation) const {
    ClientOptions result;
    result.address = server_ ? server_->address() : "";
    result.job = kJob;
    result.secret = secret_;
    result.encrypt = encrypt_;
    Register registration;
    registration.incarnation = incarnation;
    registration.pid = 1;
    // No listener there, so that the server takes the end of the connection for the worker's end.
    registration.endpoints = {host_identity(), {}, "elastic-no-listener"};
    result.registration = [registration] { return registration; };
    return result;
  }
  std::unique_ptr<Worker> worker(const std::string& incarnation) {
    return std::make_unique<Worker>(io_, client_options(incarnation));
  }

  /// Runs the clients until something holds.
  ::testing::AssertionResult eventually(const std::function<bool()>& holds) {
    const TimePoint until = Clock::now() + kSoon;
    while (!holds()) {
      if (Clock::now() > until) return ::testing::AssertionFailure() << "not in time";
      io_.restart();
      io_.run_one_for(Milliseconds(20));
    }
    return ::testing::AssertionSuccess();
  }

  /// `count` workers, in a first view.
  void form(int count) {
    for (int i = 0; i < count; ++i) workers_.push_back(worker("w" + std::to_string(i)));
    ASSERT_TRUE(eventually([&] { return all_see(1, static_cast<std::size_t>(count)); }));
  }
  bool all_see(std::uint64_t generation, std::size_t members) const {
    for (const auto& worker : workers_) {
      const View& view = worker->view();
      if (view.generation < generation || view.members.size() != members) return false;
    }
    return true;
  }

  Result<Message> ask(const Message& message) {
    // The workers' heartbeats go on meanwhile.
    std::optional<Result<Message>> answer;
    std::thread asker([&] {
      Result<Message> got =
          request(server_->address(), kJob, secret_, message, Milliseconds(10000), encrypt_);
      asio::post(io_, [&, got] { answer = got; });
    });
    EXPECT_TRUE(eventually([&] { return answer.has_value(); }));
    asker.join();
    return answer.value_or(Status(Code::kTimeout, "no answer"));
  }
  StatusReply status() {
    const Result<Message> answer = ask(StatusRequest{});
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? std::get<StatusReply>(answer.value()) : StatusReply{};
  }

  tcp::socket raw() {
    tcp::socket socket(io_);
    socket.connect(tcp::endpoint(asio::ip::make_address("127.0.0.1"), server_->port()));
    return socket;
  }
  /// The handshake of a client that knows the secret.
  static void shake_hands(tcp::socket& socket, const handshake::Dialer& dialer) {
    asio::write(socket, asio::buffer(dialer.hello()));
    std::array<std::byte, handshake::kChallengeBytes> challenge{};
    asio::read(socket, asio::buffer(challenge));
    asio::write(socket, asio::buffer(dialer.answer(challenge).value()));
    std::array<std::byte, handshake::kVerdictBytes> verdict{};
    asio::read(socket, asio::buffer(verdict));
  }
  /// Whether the server closes the connection.
  ::testing::AssertionResult is_closed(tcp::socket& socket) {
    bool closed = false;
    std::string text;
    asio::async_read(socket, asio::dynamic_buffer(text),
                     [&](const Error& /*error*/, std::size_t /*bytes*/) { closed = true; });
    const auto result = eventually([&] { return closed; });
    Error ignored;
    socket.close(ignored);
    return result;
  }
  /// Runs the clients until a coroutine has its result.
  template <typename T>
  Result<T> await(asio::awaitable<Result<T>> task) {
    std::optional<Result<T>> result;
    const auto take = [&]() -> asio::awaitable<void> { result = co_await std::move(task); };
    asio::co_spawn(io_, take, asio::detached);
    EXPECT_TRUE(eventually([&] { return result.has_value(); }));
    return *result;
  }
  Result<std::shared_ptr<Connection>> enter(const Greeting& greeting) {
    return await(dial({server_->address(), secret_, greeting, encrypt_}, Milliseconds(10000)));
  }

  const Secret secret_ = random_secret();
  bool encrypt_ = false;  ///< both sides do, unless a test says otherwise
  asio::io_context io_{1};
  std::optional<RunningServer> server_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace elastic::rendezvous
