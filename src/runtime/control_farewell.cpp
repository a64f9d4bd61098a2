// How a worker's membership ends: it leaves, fails the job, gives up, or is let go.
#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "runtime/control.hpp"

namespace elastic::runtime {

namespace asio = boost::asio;

void Control::leave_at_once(const std::string& unable) {
  if (!status_.is_in_job()) return;
  asio::post(io_, [this, unable] { participation_.bye({false, unable, !unable.empty()}); });
}

void Control::leave(const std::string& unable) {
  if (!status_.is_in_job()) return;
  const bool done = unable.empty();
  asio::post(io_, [this, done, unable] {
    // The server compares the progress of the members that say that the job is at its end.
    client_->send(heartbeat());
    participation_.bye({done, unable, !done});
  });
  status_.wait_for_farewell();
}

void Control::fail_job(const Status& reason) {
  asio::post(io_, [this, reason] { participation_.bye({false, reason.message(), false}); });
  // Otherwise this process might end before the server has received it.
  status_.wait_until_ended_or_disconnected();
}

/// Says Bye with the reason, then closes the connection to the server. No member then waits for a
/// report of this worker, or for a result that only this worker has and may be unable to give.
void Control::leave_with_error(const Status& reason, bool setup) {
  if (!status_.leave(reason)) return;
  log::error("leaves the job: {}", reason.message());
  flight_log_.write(reason.message());
  asio::post(io_, [this, reason, setup] {
    participation_.bye({false, reason.message(), true, setup ? std::optional(true) : std::nullopt});
    client_->close();
  });
  effects_.end(reason);
}

/// The operations are written first: the program may end at once when its calls fail.
void Control::end_in_error(const Status& reason) {
  flight_log_.write(reason.message());
  effects_.end(reason);
}

void Control::close() {
  effects_.end(Status(Code::kNotInitialized, "elastic::shutdown was called"));
}

void Control::on_farewell(const rendezvous::Farewell& farewell) {
  using Reason = rendezvous::Farewell::Reason;
  status_.on_farewell();
  switch (farewell.reason) {
    case Reason::kDone:
      return effects_.end(Status(Code::kDone, "the job is done"));
    case Reason::kRemoved:
      return effects_.end(Status(Code::kRemoved, "this worker was asked to leave the job"));
    case Reason::kStopped:
      return effects_.end(Status(Code::kStopped, "the job was asked to stop"));
    case Reason::kEvicted:
      return end_in_error(
          Status(Code::kEvicted, "the job went on without this worker: " + farewell.text));
  }
}

}  // namespace elastic::runtime
