#pragma once

#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/host_identity.hpp"
#include "base/thread_checker.hpp"
#include "collectives/transport/data_connection.hpp"
#include "collectives/transport/linker_options.hpp"

namespace elastic::transport {

/// A coroutine of the control thread.
template <typename T>
using Task = boost::asio::awaitable<T>;

/// The state that the parts of one Linker share. Belongs to the control thread. Each part, and so
/// each coroutine of a part, keeps it alive.
struct LinkerContext {
  LinkerContext(boost::asio::io_context& on, LinkerOptions from)
      : io(on), options(std::move(from)) {}

  bool closed() const { return sockets.closed(); }

  boost::asio::io_context& io;
  const LinkerOptions options;
  const std::string host = host_identity();  ///< as in Endpoints
  ThreadChecker control_thread = {};
  OpenSockets sockets = {};
};

}  // namespace elastic::transport
