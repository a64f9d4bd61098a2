#include "rendezvous/launcher/notice/http_request.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace elastic::notice {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::size_t kMostBody = 64 * 1024;
constexpr int kHttp11 = 11;

Status failed(const HttpRequest& request, const boost::system::error_code& error) {
  return Status(Code::kUnavailable,
                "http://" + request.address + request.path + ": " + error.message());
}

}  // namespace

asio::awaitable<Result<HttpAnswer>> http_request(HttpRequest request, Milliseconds limit) {
  boost::system::error_code error;
  const auto token = [&error] { return asio::redirect_error(asio::use_awaitable, error); };
  const auto colon = request.address.find_last_of(':');
  const std::string host = request.address.substr(0, colon);
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto found =
      co_await resolver.async_resolve(host, request.address.substr(colon + 1), token());
  if (error) co_return failed(request, error);
  beast::tcp_stream stream(executor);
  stream.expires_after(limit);
  co_await stream.async_connect(found, token());
  if (error) co_return failed(request, error);

  http::request<http::empty_body> message;
  message.method_string(request.method);
  message.target(request.path);
  message.version(kHttp11);
  message.set(http::field::host, host);
  message.set(http::field::connection, "close");
  message.set(http::field::content_length, "0");
  for (const auto& [name, value] : request.headers) message.set(name, value);
  co_await http::async_write(stream, message, token());
  if (error) co_return failed(request, error);

  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostBody);
  co_await http::async_read(stream, buffer, parser, token());
  if (error) co_return failed(request, error);
  co_return HttpAnswer{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

}  // namespace elastic::notice
