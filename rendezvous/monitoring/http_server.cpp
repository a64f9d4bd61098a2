#include "rendezvous/monitoring/http_server.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>

#include "base/asio_sockets.hpp"
#include "base/unauthenticated_connections.hpp"
#include "rendezvous/monitoring/http_answer.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/protocol/listening.hpp"

namespace elastic::monitoring {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

/// When there are no descriptors left, until some may be free again.
constexpr Milliseconds kAcceptPause{100};
/// Bytes that a client sends after its request.
constexpr std::size_t kMostDropped = 64 * 1024;

using Request = http::request<http::empty_body>;
using Response = http::response<http::span_body<const char>>;

Result<tcp::endpoint> endpoint_of(const std::string& address) {
  const Status wrong(Code::kInvalidArgument,
                     "--http " + address +
                         ": give an IPv4 or IPv6 address and a port, as in "
                         "127.0.0.1:9090 or [::1]:9090; port 0 is any that is free");
  const auto parts = rendezvous::parse_address(address);
  if (!parts.ok()) return wrong;
  Error error;
  const auto host = asio::ip::make_address(parts.value().host, error);
  if (error) return wrong;
  return tcp::endpoint(host, static_cast<std::uint16_t>(std::stoi(parts.value().port)));
}

/// Not where the client is slow or gone.
bool is_bad_request(const Error& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

/// A page of another site cannot read what is answered here, and the page here gets nothing from
/// elsewhere.
void set_headers(Response& response, const HttpAnswer& answer) {
  response.set(http::field::content_type, answer.type);
  response.set(http::field::cache_control, "no-store");
  response.set(http::field::connection, "close");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Content-Security-Policy",
               "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  if (answer.status == 405) response.set(http::field::allow, "GET, HEAD");
}

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, HttpOptions options, std::function<rendezvous::StatusReply()> status)
      : io_(io),
        options_(std::move(options)),
        documents_(std::move(status)),
        acceptor_(io),
        pause_(io) {}

  Status listen() {
    const Result<tcp::endpoint> wanted = endpoint_of(options_.address);
    if (!wanted.ok()) return wanted.status();
    const auto bound = rendezvous::listen_at(acceptor_, wanted.value());
    if (!bound.ok()) return Status(bound.status().code(), "--http: " + bound.status().message());
    address_ = rendezvous::to_string(bound.value());
    at_loopback_ = bound.value().address().is_loopback();
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->accept(); }, asio::detached);
    return {};
  }

  const std::string& address() const { return address_; }

  void close() {
    closed_ = true;
    Error ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const auto& [id, stream] : std::exchange(streams_, {})) stream->close();
  }

 private:
  using Stream = std::shared_ptr<beast::tcp_stream>;
  using Id = UnauthenticatedConnections::Id;

  asio::awaitable<void> accept() {
    while (!closed_) {
      Error error;
      tcp::socket socket(io_);
      co_await accept_socket(acceptor_, socket, error);
      if (closed_) co_return;
      if (!error) {
        admit(std::make_shared<beast::tcp_stream>(std::move(socket)));
        continue;
      }
      pause_.expires_after(kAcceptPause);
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }

  void admit(const Stream& stream) {
    Error error;
    const auto peer = stream->socket().remote_endpoint(error);
    if (error) return;
    const auto admission = connections_.admit(origin_of(peer.address()));
    if (admission.displaced) end(*admission.displaced);
    const Id id = admission.admitted;
    streams_.emplace(id, stream);
    asio::co_spawn(
        io_, [self = shared_from_this(), stream, id] { return self->serve(stream, id); },
        [self = shared_from_this(), id](const std::exception_ptr& /*of this client alone*/) {
          self->end(id);
        });
  }

  void end(Id id) {
    connections_.remove(id);
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    found->second->close();
    streams_.erase(found);
  }

  asio::awaitable<void> serve(Stream stream, Id id) {
    Error error;
    const auto token = [&error] { return asio::redirect_error(asio::use_awaitable, error); };
    stream->expires_after(options_.longest);
    beast::flat_buffer buffer(options_.most_header_bytes);
    http::request_parser<http::empty_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(options_.most_header_bytes));
    co_await http::async_read_header(*stream, buffer, parser, token());
    if (error && !is_bad_request(error)) co_return;
    connections_.heard(id);
    const Request& request = parser.get();
    const HttpAnswer answer = error ? bad_request() : answer_to(request);
    Response response(static_cast<http::status>(answer.status), request.version());
    set_headers(response, answer);
    response.content_length(answer.body->size());
    if (request.method() != http::verb::head) {
      response.body() = beast::span<const char>(answer.body->data(), answer.body->size());
    }
    http::response_serializer<http::span_body<const char>> serializer(response);
    if (request.method() == http::verb::head) {
      co_await http::async_write_header(*stream, serializer, token());
    } else {
      co_await http::async_write(*stream, serializer, token());
    }
    if (!error) stream->socket().shutdown(tcp::socket::shutdown_send, error);
    if (!error) co_await drain(stream);
  }

  HttpAnswer answer_to(const Request& request) {
    if (at_loopback_ && !is_local_name(std::string(request[http::field::host]))) {
      return foreign_name();
    }
    return documents_.answer(std::string(request.method_string()), std::string(request.target()),
                             Clock::now());
  }

  /// Drops what the client still sends, such as the body of a POST: a reset would destroy the
  /// answer.
  asio::awaitable<void> drain(Stream stream) {
    Error error;
    std::array<char, 4096> dropped{};
    for (std::size_t left = kMostDropped; left > 0 && !error;) {
      const std::size_t came = co_await stream->async_read_some(
          asio::buffer(dropped), asio::redirect_error(asio::use_awaitable, error));
      left -= std::min(left, came);
    }
  }

  asio::io_context& io_;
  const HttpOptions options_;
  Documents documents_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::string address_;
  bool at_loopback_ = false;
  UnauthenticatedConnections connections_{options_.most_connections};
  std::map<Id, Stream> streams_;
  bool closed_ = false;
};

HttpServer::HttpServer(asio::io_context& io, HttpOptions options,
                       std::function<rendezvous::StatusReply()> status)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(status))) {}
HttpServer::~HttpServer() {
  impl_->close();
}

Status HttpServer::listen() {
  return impl_->listen();
}
const std::string& HttpServer::address() const {
  return impl_->address();
}
void HttpServer::close() {
  impl_->close();
}

}  // namespace elastic::monitoring
