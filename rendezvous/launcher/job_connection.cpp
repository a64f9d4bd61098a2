#include "rendezvous/launcher/job_connection.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "rendezvous/client/backoff.hpp"
#include "rendezvous/client/successor_watch.hpp"
#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::launcher {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kAttempt{5000};

rendezvous::Backoff short_pauses_first() {
  return {Milliseconds(50), Milliseconds(1000)};
}

}  // namespace

class JobConnection::Impl : public std::enable_shared_from_this<Impl> {
 public:
  /// Is given the server's reply; null: the server does not come back.
  using Answer = std::function<void(const rendezvous::Message*)>;

  Impl(asio::io_context& io, rendezvous::Destination server, rendezvous::Enlist self,
       Handlers handlers, Milliseconds longest_outage)
      : io_(io),
        server_(std::move(server)),
        self_(std::move(self)),
        handlers_(std::move(handlers)),
        longest_outage_(longest_outage),
        pause_(io) {
    if (handlers_.on_end_worker) self_.ends_silent = true;
  }

  void start() {
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->run(); },
        [](std::exception_ptr thrown) {
          if (thrown) std::rethrow_exception(thrown);
        });
  }

  WorkerReport report_on(const std::string& label, const rendezvous::StatusReply* reply) const {
    WorkerReport report{phase_, joinable_};
    report.unanswered = reply == nullptr;
    if (reply == nullptr) return report;
    for (const auto& departed : reply->departed) {
      const auto slot = rendezvous::parse_slot_label(departed.label);
      const bool here = slot && slot->launcher == self_.number.value_or(0);
      if (here && departed.how == "early") report.ended_early[slot->number] = departed.why;
      if (departed.label != label) continue;
      report.left = departed.how == "removed"    ? WorkerReport::Left::kRemoved
                    : departed.how == "finished" ? WorkerReport::Left::kFinished
                    : departed.how == "early"    ? WorkerReport::Left::kEarly
                    : departed.how == "unable"   ? WorkerReport::Left::kUnable
                    : departed.how == "evicted"  ? WorkerReport::Left::kEvicted
                                                 : WorkerReport::Left::kLost;
      report.why = departed.why;
    }
    report.several_launchers = reply->launchers && reply->launchers->size() > 1;
    // A server that was started again does not know the members yet.
    report.others = reply->phase == "recovering" ||
                    std::ranges::any_of(reply->view.members, [&](const auto& member) {
                      const auto slot = rendezvous::parse_slot_label(member.label);
                      return !slot || slot->launcher != self_.number.value_or(0);
                    });
    report.member = std::ranges::any_of(reply->view.members,
                                        [&](const auto& member) { return member.label == label; });
    return report;
  }

  /// `answer` is empty where the answer is of no further interest.
  void request(const rendezvous::Message& message, const Answer& answer) {
    unanswered_.push_back({message, answer});
    if (connection_) {
      connection_->send(message);
    } else if (last_) {
      asio::post(io_, [self = shared_from_this()] { self->answer_from_last(); });
    }
  }

  void tell_end(const std::string& label, const std::string& failure, std::int64_t pid) {
    request(rendezvous::WorkerEnded{++ends_, label, failure, pid}, {});
  }

  void set_running(int count) {
    if (count == self_.running) return;
    self_.running = count;
    tell_numbers();
  }

  /// The owner is going: no handler is called any more.
  void abandon() {
    abandoned_ = true;
    handlers_ = {};
    unanswered_.clear();
    pause_.cancel();
    if (connection_) connection_->abort("the launcher ends");
  }

 private:
  struct Request {
    rendezvous::Message message;
    Answer answer;
  };

  asio::awaitable<void> run() {
    rendezvous::Backoff backoff = short_pauses_first();
    lost_at_ = Clock::now();
    while (!abandoned_) {
      const Status ended = co_await attempt();
      if (abandoned_) co_return;
      answer_from_last();
      if (abandoned_) co_return;
      if (std::exchange(established_, false)) {
        if (!last_) {
          log::warn("lost the rendezvous server, connects again: {}", ended.message());
        }
        backoff = short_pauses_first();
        lost_at_ = Clock::now();
        continue;
      }
      if (handlers_.on_no_connection) handlers_.on_no_connection(ended, Clock::now() - lost_at_);
      if (abandoned_) co_return;
      if (Clock::now() >= lost_at_ + longest_outage_) do_without(ended);
      co_await wait(backoff.pause());
    }
  }

  /// One connection, from dialing to its end.
  asio::awaitable<Status> attempt() {
    const auto dialed = co_await rendezvous::dial(server_, kAttempt);
    if (!dialed.ok() || abandoned_) co_return dialed.status();
    connection_ = dialed.value();
    const rendezvous::SuccessorWatch watch(server_, connection_);
    enlisted_ = false;
    connection_->send(self_);
    for (const Request& request : unanswered_) connection_->send(request.message);
    Status ended = co_await listen();
    // Also where it is only damaged: the server is not to count on it.
    connection_->abort(ended.message());
    connection_.reset();
    co_return ended;
  }

  asio::awaitable<Status> listen() {
    while (true) {
      const auto message = co_await connection_->read();
      if (!message.ok()) co_return message.status();
      if (abandoned_) co_return Status();
      if (const auto* refuse = std::get_if<rendezvous::Refuse>(&message.value())) {
        co_return Status(Code::kRefused, server_.address + ": " + refuse->reason);
      }
      receive(message.value());
    }
  }

  void receive(const rendezvous::Message& message) {
    if (const auto* state = std::get_if<rendezvous::JobState>(&message)) {
      established_ = true;
      if (std::exchange(silent_, false) && known_) log::warn("the rendezvous server is back");
      phase_ = parse_job_phase(state->phase);
      joinable_ = state->joinable;
      self_.begun |= phase_ == JobPhase::kRunning;
      if (state->last) last_ = *state->last;
      if (handlers_.on_state) {
        handlers_.on_state({phase_, state->text, state->joinable, state->end_workers,
                            state->phase == "recovering", state->stopped});
      }
    } else if (const auto* enlisted = std::get_if<rendezvous::Enlisted>(&message)) {
      const bool first = !std::exchange(known_, true);
      enlisted_ = true;
      self_.number = enlisted->number;
      if (first && handlers_.on_enlisted) handlers_.on_enlisted(*enlisted);
      if (!first) quarantine(enlisted->quarantined);
    } else if (const auto* quarantined = std::get_if<rendezvous::Quarantined>(&message)) {
      if (enlisted_) quarantine(quarantined->on);
    } else if (const auto* spawn = std::get_if<rendezvous::Spawn>(&message)) {
      if (enlisted_) catch_up(spawn->total);
    } else if (const auto* limited = std::get_if<rendezvous::Limited>(&message)) {
      limit(*limited);
    } else if (const auto* worker = std::get_if<rendezvous::EndWorker>(&message)) {
      if (handlers_.on_end_worker) handlers_.on_end_worker(*worker);
    } else if (const auto* status = std::get_if<rendezvous::StatusReply>(&message)) {
      phase_ = parse_job_phase(status->phase);
      joinable_ = status->joinable;
      answer_first(message);
    } else if (const auto* done = std::get_if<rendezvous::Done>(&message)) {
      const bool asked = !unanswered_.empty() && unanswered_.front().answer;
      if (!done->ok && !asked && std::exchange(refusal_, done->text) != done->text) {
        log::warn("the server refused a request: {}", done->text);
      }
      answer_first(message);
    }
  }

  void catch_up(std::int64_t total) {
    const std::int64_t missing = total - std::exchange(self_.spawned, total);
    if (missing <= 0 || !handlers_.on_spawn) return;
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    handlers_.on_spawn({static_cast<int>(std::min(missing, kMost))});
    tell_numbers();
  }

  void limit(const rendezvous::Limited& limited) {
    self_.slots = limited.slots;
    tell_numbers();
    if (!handlers_.on_slots) return;
    std::optional<Milliseconds> deadline;
    if (limited.deadline_ms) deadline = Milliseconds(*limited.deadline_ms);
    handlers_.on_slots({limited.slots, deadline});
  }

  void quarantine(bool on) {
    if (handlers_.on_quarantine) handlers_.on_quarantine({on});
  }

  void tell_numbers() {
    if (connection_ && enlisted_) connection_->send(self_);
  }

  /// Answers come in the order of requests.
  void answer_first(const rendezvous::Message& reply) {
    if (unanswered_.empty()) return;
    const Request request = std::move(unanswered_.front());
    unanswered_.pop_front();
    if (request.answer) request.answer(&reply);
  }

  /// The server of a job that is over may have ended, too.
  void answer_from_last() {
    if (!last_ || connection_) return;
    const rendezvous::Message last = *last_;
    for (const Request& request : std::exchange(unanswered_, {})) {
      if (request.answer) request.answer(&last);
    }
  }

  /// Workers that end are not to wait for a server that may never be back. The server gets other
  /// requests when it is back.
  void do_without(const Status& why) {
    if (!std::exchange(silent_, true)) {
      log::warn("the rendezvous server {}, tries again: {}",
                known_ ? "is still away; workers train on" : "cannot be reached", why.message());
    }
    for (Request& request : std::exchange(unanswered_, {})) {
      if (request.answer) {
        request.answer(nullptr);
      } else {
        unanswered_.push_back(std::move(request));
      }
    }
  }

  asio::awaitable<void> wait(Duration time) {
    boost::system::error_code ignored;
    pause_.expires_after(time);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::io_context& io_;
  const rendezvous::Destination server_;
  rendezvous::Enlist self_;
  Handlers handlers_;
  const Milliseconds longest_outage_;
  asio::steady_timer pause_;
  std::shared_ptr<rendezvous::Connection> connection_;
  std::deque<Request> unanswered_;  ///< sent where there is a connection, and again on the next
  std::optional<rendezvous::StatusReply> last_;  ///< of a job that is over
  JobPhase phase_ = JobPhase::kForming;
  bool joinable_ = false;
  TimePoint lost_at_;
  bool established_ = false;  ///< the server has spoken on this connection
  bool enlisted_ = false;     ///< the server knows this launcher, on this connection
  bool known_ = false;        ///< it did so on some connection
  std::int64_t ends_ = 0;     ///< of workers, told
  bool silent_ = false;       ///< it was said that it does not come back
  std::string refusal_;       ///< the latest that was told
  bool abandoned_ = false;
};

JobConnection::JobConnection(asio::io_context& io, rendezvous::Destination server,
                             rendezvous::Enlist self, Handlers handlers,
                             Milliseconds longest_outage)
    : impl_(std::make_shared<Impl>(io, std::move(server), std::move(self), std::move(handlers),
                                   longest_outage)) {
  impl_->start();
}
JobConnection::~JobConnection() {
  impl_->abandon();
}
void JobConnection::ask_about(std::string label, std::function<void(const WorkerReport&)> answer) {
  // Abandoned requests are not answered, so the connection outlives the answer.
  impl_->request(
      rendezvous::StatusRequest{}, [connection = impl_.get(), label = std::move(label),
                                    answer = std::move(answer)](const rendezvous::Message* reply) {
        answer(connection->report_on(label, std::get_if<rendezvous::StatusReply>(reply)));
      });
}
void JobConnection::ask_status(std::function<void(const rendezvous::StatusReply*)> answer) {
  impl_->request(rendezvous::StatusRequest{},
                 [answer = std::move(answer)](const rendezvous::Message* reply) {
                   answer(std::get_if<rendezvous::StatusReply>(reply));
                 });
}
void JobConnection::tell_end(const std::string& label, const std::string& failure,
                             std::int64_t pid) {
  impl_->tell_end(label, failure, pid);
}
void JobConnection::ask_for_replacement(std::function<void(bool)> answer) {
  impl_->request(rendezvous::AddRequest{.count = 1, .replaces = true},
                 [answer = std::move(answer)](const rendezvous::Message* reply) {
                   const auto* done = std::get_if<rendezvous::Done>(reply);
                   answer(done != nullptr && done->ok);
                 });
}
void JobConnection::request(const rendezvous::Message& message) {
  impl_->request(message, {});
}
void JobConnection::request_stop() {
  impl_->request(rendezvous::StopRequest{}, {});
}
void JobConnection::request_removal(const std::vector<std::string>& labels,
                                    const std::function<void(const std::string&)>& refused) {
  for (const std::string& label : labels) {
    impl_->request(rendezvous::RemoveRequest{0, label},
                   [refused](const rendezvous::Message* reply) {
                     const auto* done = std::get_if<rendezvous::Done>(reply);
                     if (done != nullptr && !done->ok) refused(done->text);
                   });
  }
}
void JobConnection::set_running(int count) {
  impl_->set_running(count);
}

}  // namespace elastic::launcher
