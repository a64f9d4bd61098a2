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

/// A joiner's application to the job. The members wait while a joiner receives the state, so it
/// first measures its line and says with its Ready how long that would take; while it is kept
/// waiting for that, it measures and applies again every few seconds. Where the line cannot be
/// measured it applies as if it was fast: this protects the members' time, and is no gate.
///
/// Belongs to the control thread.
class Application {
 public:
  /// Bytes per second.
  using Measured = std::function<void(Result<double>)>;
  /// Measures the line from a member.
  using Measure =
      std::function<void(const rendezvous::Member& donor, Milliseconds deadline, Measured)>;
  using Send = std::function<void(const rendezvous::Ready&)>;

  Application(boost::asio::io_context& io, Measure measure, Send send);

  void on_welcome(const rendezvous::Welcome& welcome);
  void on_wait(const rendezvous::Wait& wait);
  /// `state_bytes` is what this worker would receive. Without a donor Ready goes out at once.
  void apply(const Layout& layout, std::uint64_t state_bytes);
  /// It has been decided, or nobody waits for it any more.
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
  bool told_ = false;  // the log why this waits
  bool closed_ = false;
};

}  // namespace elastic::runtime
