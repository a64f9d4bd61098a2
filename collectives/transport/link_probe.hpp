#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/transport/data_connection.hpp"
#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Measures the line from a peer: the peer sends a fixed number of bytes, and this worker times
/// them. Serves the measurements of others, too.
///
/// Belongs to the control thread. A coroutine that it spawns keeps it alive, also before the
/// coroutine begins.
class LinkProbe : public std::enable_shared_from_this<LinkProbe> {
 public:
  /// Bytes per second.
  using Measured = std::function<void(Result<double>)>;

  explicit LinkProbe(std::shared_ptr<LinkerContext> context);

  /// See Linker::probe.
  void measure(Peer peer, Milliseconds deadline, Measured callback);
  /// Sends the bytes that the dialer of `with` times. The dialer has proved that it knows the
  /// secret. Closes the connection if too many measurements are being served.
  void serve(DataConnection with);
  /// Drops the callback.
  void close();

 private:
  Task<void> keep_measuring(Peer peer, std::uint64_t probe);
  Task<Result<double>> measure_once(const Peer& peer);
  Task<void> send_bytes(DataConnection with);
  void finish(std::uint64_t probe, Result<double> outcome);

  const std::shared_ptr<LinkerContext> context_;
  Measured measured_;        // of the present call of `measure`
  std::uint64_t probe_ = 0;  // its number
  boost::asio::steady_timer deadline_;
  int served_ = 0;  // measurements of other workers that are served at present
};

}  // namespace elastic::transport
