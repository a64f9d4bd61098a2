#include "rendezvous/hosts/address_toward.hpp"

#include <climits>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include "base/interface_addresses.hpp"

namespace elastic::hosts {

namespace asio = boost::asio;
using asio::ip::udp;

namespace {

std::string name_of_this_machine() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.") ||
         host == name_of_this_machine();
}

asio::awaitable<std::string> address_toward(std::string host) {
  if (const auto at = host.find('@'); at != std::string::npos) host.erase(0, at + 1);
  const auto executor = co_await asio::this_coro::executor;
  udp::resolver resolver(executor);
  boost::system::error_code error;
  // Any port will do: connect(2) on UDP only looks for a route.
  const auto found =
      co_await resolver.async_resolve(host, "9", asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    for (const auto& entry : found) {
      udp::socket socket(executor);
      socket.connect(entry.endpoint(), error);
      if (error) continue;
      const auto address = socket.local_endpoint(error).address();
      if (error) continue;
      co_return address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
    }
  }
  co_return interface_addresses(false).front().address.to_string();
}

std::string find_address_toward(const std::string& host) {
  asio::io_context io(1);
  auto found = asio::co_spawn(io, address_toward(host), asio::use_future);
  io.run();
  return found.get();
}

}  // namespace elastic::hosts
