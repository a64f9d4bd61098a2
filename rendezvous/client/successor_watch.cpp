#include "rendezvous/client/successor_watch.hpp"

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace elastic::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kBetweenLooks{2000};
constexpr Milliseconds kLookDeadline{1000};

}  // namespace

class SuccessorWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Destination others, std::shared_ptr<Connection> connection)
      : others_(std::move(others)),
        connection_(std::move(connection)),
        pause_(connection_->executor()) {}

  void start() {
    asio::co_spawn(
        pause_.get_executor(), [self = shared_from_this()] { return self->run(); }, asio::detached);
  }

  void end() {
    connection_.reset();
    pause_.cancel();
  }

 private:
  asio::awaitable<void> run() {
    while (connection_) {
      boost::system::error_code ignored;
      pause_.expires_after(kBetweenLooks);
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      if (!connection_) co_return;
      const auto found = co_await dial(others_, kLookDeadline);
      if (!found.ok()) continue;
      found.value()->abort("only looked for");
      if (connection_)
        connection_->abort("the server at " + found.value()->dialed() + " leads now");
      co_return;
    }
  }

  const Destination others_;
  std::shared_ptr<Connection> connection_;  ///< null: the watch has ended
  asio::steady_timer pause_;
};

SuccessorWatch::SuccessorWatch(Destination server, std::shared_ptr<Connection> connection) {
  const auto addresses = parse_addresses(server.address);
  if (!addresses.ok()) return;
  server.address.clear();
  for (const std::string& address : addresses.value()) {
    if (address == connection->dialed()) continue;
    server.address += (server.address.empty() ? "" : ",") + address;
  }
  if (server.address.empty()) return;
  impl_ = std::make_shared<Impl>(std::move(server), std::move(connection));
  impl_->start();
}
SuccessorWatch::~SuccessorWatch() {
  if (impl_) impl_->end();
}

}  // namespace elastic::rendezvous
