#include "rendezvous/etcd/http_post.hpp"

#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <openssl/ssl.h>

#include "base/asio_sockets.hpp"

namespace elastic::etcd {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Error = boost::system::error_code;

namespace {

/// The greatest value that etcd takes is 1.5 MiB unless it is told otherwise; base64 adds a third.
constexpr std::size_t kMostBody = 8 << 20;
constexpr int kHttp11 = 11;

auto into(Error& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

/// The first of the host's addresses that can be reached.
asio::awaitable<void> connect(beast::tcp_stream& stream, const rendezvous::HostPort& to,
                              Error& error) {
  asio::ip::tcp::resolver resolver(stream.get_executor());
  const auto found = co_await resolver.async_resolve(to.host, to.port, into(error));
  if (error) co_return;
  error = asio::error::not_found;
  for (const auto& entry : found) {
    Error ignored;
    stream.socket().close(ignored);
    open_socket(stream.socket(), entry.endpoint().protocol(), error);
    if (!error) co_await stream.async_connect(entry.endpoint(), into(error));
    if (!error || error == beast::error::timeout) co_return;
  }
}

template <typename Stream>
asio::awaitable<HttpAnswer> exchange(Stream& stream, const HttpPost& post, Error& error) {
  http::request<http::string_body> message(http::verb::post, post.path, kHttp11, post.body);
  message.set(http::field::host, post.to.host);
  message.set(http::field::connection, "close");
  message.set(http::field::content_type, "application/json");
  if (!post.authorization.empty()) message.set(http::field::authorization, post.authorization);
  message.prepare_payload();
  co_await http::async_write(stream, message, into(error));
  if (error) co_return HttpAnswer{};
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostBody);
  co_await http::async_read(stream, buffer, parser, into(error));
  co_return HttpAnswer{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

asio::awaitable<HttpAnswer> exchange_encrypted(beast::tcp_stream plain, asio::ssl::context& tls,
                                               const HttpPost& post, Error& error) {
  asio::ssl::stream<beast::tcp_stream> stream(std::move(plain), tls);
  stream.set_verify_callback(asio::ssl::host_name_verification(post.to.host), error);
  Error no_address;
  asio::ip::make_address(post.to.host, no_address);
  // Only names may be named there (RFC 6066, 3).
  if (no_address) SSL_set_tlsext_host_name(stream.native_handle(), post.to.host.c_str());
  if (!error) {
    co_await stream.async_handshake(asio::ssl::stream_base::client, into(error));
  }
  if (error) co_return HttpAnswer{};
  co_return co_await exchange(stream, post, error);
}

}  // namespace

asio::awaitable<Result<HttpAnswer>> http_post(HttpPost post, asio::ssl::context* tls,
                                              Milliseconds limit) {
  beast::tcp_stream stream(co_await asio::this_coro::executor);
  stream.expires_after(limit);
  Error error;
  HttpAnswer answer;
  co_await connect(stream, post.to, error);
  if (!error && tls != nullptr) {
    answer = co_await exchange_encrypted(std::move(stream), *tls, post, error);
  } else if (!error) {
    answer = co_await exchange(stream, post, error);
  }
  if (!error) co_return answer;
  co_return Status(Code::kUnavailable,
                   error == beast::error::timeout ? "does not answer" : error.message());
}

}  // namespace elastic::etcd
