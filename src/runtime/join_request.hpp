#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// A joiner's request to be admitted. The members wait while a joiner receives the state, so it
/// first measures its line to a donor, and sends the estimated transfer time with its Ready. If the
/// server tells it to wait, it measures and sends Ready again every few seconds. A failed
/// measurement leaves the previous estimate (at first: no time): the limit protects the members'
/// time, and does not decide which workers may join.
///
/// Not thread-safe: belongs to the control thread.
class JoinRequest {
 public:
  /// Bytes per second.
  using Measured = std::function<void(Result<double>)>;
  /// Measures the line from a member.
  using Measure =
      std::function<void(const rendezvous::Member& donor, Milliseconds deadline, Measured)>;
  using Send = std::function<void(const rendezvous::Ready&)>;

  JoinRequest(boost::asio::io_context& io, Measure measure, Send send);

  void on_welcome(const rendezvous::Welcome& welcome);
  void on_wait(const rendezvous::Wait& wait);
  /// Requests admission. `state_bytes` is the size of the state to receive. Without a donor Ready
  /// is sent at once.
  void apply(const Layout& layout, std::uint64_t state_bytes);
  /// Ends the request: it has been decided, or does not matter any more.
  void close();

 private:
  void measure_and_send();

  const Measure measure_;
  const Send send_;
  boost::asio::steady_timer pause_;
  std::minstd_rand random_{std::random_device{}()};
  std::optional<rendezvous::Member> donor_;
  rendezvous::Ready ready_;
  std::uint64_t state_bytes_ = 0;
  bool told_ = false;  // the log has the reason why this waits
  bool closed_ = false;
};

}  // namespace elastic::runtime
