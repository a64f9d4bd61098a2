#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace boost::asio {
class io_context;
}

namespace elastic::monitoring {

struct HttpOptions {
  std::string address;                ///< "127.0.0.1:9090", "[::1]:0"; port 0: any that is free
  std::size_t most_connections = 32;  ///< the oldest silent one makes room for another
  std::size_t most_header_bytes = 8192;
  Milliseconds longest{5000};  ///< for a connection, from its first byte to its last
};

/// Shows a job to any client over HTTP: a page, its status as JSON, and metrics. It can be read
/// only, and answers one request on each connection. A slow or silent client costs a descriptor for
/// a few seconds, and no time of the job's.
///
/// Lives on the io_context of the job's server, which one thread runs; every function is called
/// there, or while it does not run.
class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, HttpOptions options,
             std::function<rendezvous::StatusReply()> status);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds and starts to answer. kInvalidArgument: no such address. kUnavailable: it is taken.
  Status listen();
  /// "127.0.0.1:4711"; after `listen`.
  const std::string& address() const;
  /// Closes everything, now.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::monitoring
