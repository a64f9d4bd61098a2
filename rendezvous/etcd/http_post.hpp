#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace boost::asio::ssl {
class context;
}

namespace elastic::etcd {

struct HttpPost {
  rendezvous::HostPort to;
  std::string path;
  std::string body;           ///< JSON
  std::string authorization;  ///< the header of that name; empty: none
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// One request on a connection of its own, under TLS where there is a `tls`, which must outlive it.
/// kUnavailable: there is no answer within `limit`, or it is no HTTP.
boost::asio::awaitable<Result<HttpAnswer>> http_post(HttpPost post, boost::asio::ssl::context* tls,
                                                     Milliseconds limit);

}  // namespace elastic::etcd
