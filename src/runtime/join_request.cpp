#include "runtime/join_request.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace elastic::runtime {

namespace {

/// Time for the donor to answer, including the probes of others before this one.
constexpr Milliseconds kMeasureWithin{5000};
/// Pause between measurements of a waiting joiner. The jitter keeps joiners that came together from
/// measuring together.
constexpr Milliseconds kShortestPause{4000};
constexpr Milliseconds kLongestPause{6000};
/// Upper bound of the estimate: slower lines need not be distinguished.
constexpr double kLongestTransferMs = 1e12;

std::uint64_t milliseconds(std::uint64_t bytes, double bytes_per_second) {
  const double time = 1e3 * static_cast<double>(bytes) / bytes_per_second;
  return static_cast<std::uint64_t>(std::min(time, kLongestTransferMs));
}

}  // namespace

JoinRequest::JoinRequest(boost::asio::io_context& io, Measure measure, Send send)
    : measure_(std::move(measure)), send_(std::move(send)), pause_(io) {}

void JoinRequest::on_welcome(const rendezvous::Welcome& welcome) {
  donor_ = welcome.donor;
}

void JoinRequest::apply(const Layout& layout, std::uint64_t state_bytes) {
  ready_.layout = layout;
  state_bytes_ = state_bytes;
  measure_and_send();
}

void JoinRequest::on_wait(const rendezvous::Wait& wait) {
  if (closed_) return;
  donor_ = wait.donor;
  if (!std::exchange(told_, true)) log::warn("waits for {}", wait.reason);
  std::uniform_int_distribution<Milliseconds::rep> pause(kShortestPause.count(),
                                                         kLongestPause.count());
  pause_.expires_after(Milliseconds(pause(random_)));
  pause_.async_wait([this](boost::system::error_code error) {
    if (!error && !closed_) measure_and_send();
  });
}

void JoinRequest::measure_and_send() {
  if (!donor_ || state_bytes_ == 0) return send_(ready_);
  measure_(*donor_, kMeasureWithin, [this](const Result<double>& rate) {
    if (closed_) return;
    // Otherwise the previous estimate stays.
    if (rate.ok()) ready_.transfer_ms = milliseconds(state_bytes_, rate.value());
    send_(ready_);
  });
}

void JoinRequest::close() {
  closed_ = true;
  donor_.reset();
  pause_.cancel();
}

}  // namespace elastic::runtime
