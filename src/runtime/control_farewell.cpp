// How a worker's membership ends: it leaves, fails the job, gives up, or is let go.
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "runtime/control.hpp"
#include "runtime/farewell_wait.hpp"

namespace elastic::runtime {

namespace asio = boost::asio;

bool Control::is_in_job() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_.ok() && welcomed_;
}

void Control::leave_at_once(const std::string& unable) {
  if (!is_in_job()) return;
  asio::post(io_, [this, unable] { participation_.bye({false, unable, !unable.empty()}); });
}

void Control::leave(const std::string& unable) {
  if (!is_in_job()) return;
  const bool done = unable.empty();
  asio::post(io_, [this, done, unable] {
    // The server compares the progress of the members that say that the job is at its end.
    client_->send(heartbeat());
    participation_.bye({done, unable, !done});
  });
  wait_for_farewell(mutex_, changed_, connected_, [this] { return farewell_ || !ended_.ok(); });
}

void Control::fail_job(const Status& reason) {
  asio::post(io_, [this, reason] { participation_.bye({false, reason.message(), false}); });
  // Otherwise this process might end before the server has received it.
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, kAbsenceAtTheEnd, [&] { return !ended_.ok() || !connected_; });
}

/// Says Bye with the reason, then closes the connection to the server. No member then waits for a
/// report of this worker, or for a result that only this worker has and may be unable to give.
void Control::abandon(const Status& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = reason;
    abandoned_ = true;
  }
  log::error("leaves the job: {}", reason.message());
  asio::post(io_, [this, reason] {
    participation_.bye({false, reason.message(), true});
    client_->close();
  });
  end(reason);
}

bool Control::left_after_timeout() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return abandoned_ && ended_.code() == Code::kTimeout;
}

void Control::close() {
  end(Status(Code::kNotInitialized, "elastic::shutdown was called"));
}

void Control::on_farewell(const rendezvous::Farewell& farewell) {
  using Reason = rendezvous::Farewell::Reason;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    farewell_ = true;
  }
  changed_.notify_all();
  switch (farewell.reason) {
    case Reason::kDone:
      return end(Status(Code::kDone, "the job is done"));
    case Reason::kRemoved:
      return end(Status(Code::kRemoved, "this worker was asked to leave the job"));
    case Reason::kStopped:
      return end(Status(Code::kStopped, "the job was asked to stop"));
    case Reason::kEvicted:
      return end(Status(Code::kEvicted, "the job went on without this worker: " + farewell.text));
  }
}

void Control::end(const Status& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.ok()) ended_ = reason;
  }
  changed_.notify_all();
  gate_.close(reason);
  for (const auto& lane : lanes_) lane->close(reason);
}

}  // namespace elastic::runtime
