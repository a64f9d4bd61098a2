#pragma once

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::notice {

struct HttpRequest {
  std::string method = "GET";
  std::string address;  ///< "HOST:PORT"
  std::string path;     ///< with the query
  std::vector<std::pair<std::string, std::string>> headers;
};

struct HttpAnswer {
  int status = 0;
  std::string body;  ///< at most 64 KiB are taken
};

/// One request on a connection of its own. kUnavailable: there is no answer within `limit`, or it
/// is no HTTP.
boost::asio::awaitable<Result<HttpAnswer>> http_request(HttpRequest request, Milliseconds limit);

}  // namespace elastic::notice
