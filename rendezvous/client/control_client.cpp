#include "rendezvous/client/control_client.hpp"

#include <exception>
#include <string>
#include <variant>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "rendezvous/client/dial.hpp"

namespace elastic::rendezvous {
namespace asio = boost::asio;

namespace {

asio::awaitable<void> ask(Destination destination, Message message, Duration timeout,
                          Result<Message>& answer) {
  const TimePoint until = Clock::now() + timeout;
  const std::string address = destination.address;
  const auto dialed = co_await dial(std::move(destination), timeout);
  if (!dialed.ok()) {
    answer = dialed.status();
    co_return;
  }
  const std::shared_ptr<Connection> connection = dialed.value();
  connection->set_deadline(until - Clock::now(), "does not answer");
  connection->send(message);
  answer = co_await connection->read();
  connection->abort("answered");
  if (!answer.ok()) {
    answer = Status(Code::kUnavailable, address + ": " + answer.status().message());
  } else if (const auto* refuse = std::get_if<Refuse>(&answer.value())) {
    answer = Status(Code::kRefused, address + ": " + std::string(refuse->reason));
  }
}

}  // namespace

Result<Message> request(const std::string& address, const std::string& job, const Secret& secret,
                        const Message& message, Milliseconds timeout, bool encrypt) try {
  asio::io_context io(1);
  Result<Message> answer = Status(Code::kUnavailable, address + ": no answer");
  std::exception_ptr thrown;
  asio::co_spawn(
      io,
      ask({address, secret, {kProtocolVersion, job, "control"}, encrypt}, message, timeout, answer),
      [&](std::exception_ptr error) { thrown = error; });
  io.run();
  if (thrown) std::rethrow_exception(thrown);
  return answer;
} catch (const std::exception& error) {
  return Status(Code::kInternal, address + ": " + error.what());
}

}  // namespace elastic::rendezvous
