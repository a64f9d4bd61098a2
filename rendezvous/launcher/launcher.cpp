#include "rendezvous/launcher/launcher.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/openssl_check.hpp"
#include "base/overloaded.hpp"
#include "base/secret_descriptor.hpp"
#include "rendezvous/launcher/console.hpp"
#include "rendezvous/launcher/exit_code.hpp"
#include "rendezvous/launcher/guardian.hpp"
#include "rendezvous/launcher/job_connection.hpp"
#include "rendezvous/launcher/job_server.hpp"
#include "rendezvous/launcher/notice/notice_watch.hpp"
#include "rendezvous/launcher/other_hosts.hpp"
#include "rendezvous/launcher/output_writer.hpp"
#include "rendezvous/launcher/preparation.hpp"
#include "rendezvous/launcher/starter_watch.hpp"
#include "rendezvous/launcher/worker_environment.hpp"
#include "rendezvous/launcher/worker_outputs.hpp"
#include "rendezvous/launcher/worker_process.hpp"
#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::launcher {

namespace {

/// Between requests to let workers go.
constexpr Milliseconds kAskAgain{500};

/// Without the server, before an agent takes its starter for gone.
constexpr Milliseconds kLongestAlone{60000};

/// From so many signals on, the reader of the rest of the output is not waited for.
constexpr int kSignalsWithoutReader = 2;

}  // namespace

class Launcher::Impl {
 public:
  Impl(LaunchOptions options, const Secret& secret, std::string program, Environment environment)
      : options_(std::move(options)),
        program_(std::move(program)),
        environment_(std::move(environment)),
        supervision_({.np = options_.np,
                      .min_np = options_.min_np,
                      .max_np = options_.slots,
                      .max_restarts = options_.max_restarts,
                      .joined = !options_.join.empty(),
                      .sigterm_repeats = options_.workers_ignore_signals,
                      .waits = options_.end_with_stdin || options_.np == 0,
                      .start = options_.start_timeout,
                      .below_minimum = options_.below_minimum_timeout,
                      .drain = options_.drain,
                      .exit = options_.exit}),
        secret_(secret) {}

  JobEnd run();

 private:
  Status prepare();
  Status start_server();
  void prepare_host();
  void end_preparation(const ExitStatus& status);
  void connect();
  void begin(const rendezvous::Enlisted& enlisted);
  void without_server(const Status& why, Duration lost_for);
  void wait_for_signal();
  void wait_for_children();
  void lose_starter();
  void watch_for_notice();
  void collect_children();
  void decide(const Event& event) { perform(supervision_.decide(event, Clock::now())); }
  void perform(const std::vector<Action>& actions);
  void remove_workers(const std::vector<int>& slots);
  void removal_refused(const std::string& why);
  void end_silent(const rendezvous::EndWorker& told);
  void start_worker(const StartWorker& start);
  Status try_start(const StartWorker& start);
  void tell_end(int slot, const std::string& failure, pid_t pid);
  std::string label(int slot) const { return rendezvous::slot_label({job_.launcher, slot}); }
  std::string running_workers() const;
  void arm_timer();
  bool joined() const { return !options_.join.empty(); }
  void say(const std::string& text) { console_->say(text); }

  const LaunchOptions options_;
  const std::string program_;
  const Environment environment_;
  Supervision supervision_;
  const Secret secret_;
  // First made, last gone: it kills what is left after everything else.
  Guardian guardian_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_{io_};
  boost::asio::signal_set children_{io_};
  boost::asio::steady_timer timer_{io_};
  boost::asio::steady_timer ask_again_{io_};
  std::set<int> leaving_;            // slots whose workers are to leave the job
  bool asks_for_others_ = false;     // whether other hosts have workers
  std::optional<JobServer> server_;  // none under --join
  JobPlace job_;
  std::optional<JobConnection> connection_;
  std::optional<StarterWatch> starter_;  // under --end-with-stdin
  std::optional<notice::NoticeWatch> notice_;
  TimePoint started_ = Clock::now();
  bool begun_ = false;  // workers have been started
  std::optional<JobStateChanged> state_before_;
  std::optional<Console> console_;
  std::optional<WorkerOutputs> outputs_;
  std::optional<Preparation> preparation_;                 // while it runs
  std::map<int, std::shared_ptr<WorkerProcess>> workers_;  // by slot, running
  bool told_of_pipes_ = false;
  int signals_heard_ = 0;
  bool finished_ = false;  // but for output that is still to be written
  JobEnd end_;
};

JobEnd Launcher::Impl::run() {
  if (Status status = prepare(); !status.ok()) {
    write_whole(STDERR_FILENO, Console::line_of(status.message()));
    return {status.code() == Code::kInvalidArgument ? exit_code::kWrongUsage : exit_code::kFailed};
  }
  prepare_host();
  io_.run();
  if (end_.exit_code == exit_code::kDone && console_->has_lost_output()) {
    end_.exit_code = exit_code::kFailed;
  }
  return end_;
}

Status Launcher::Impl::prepare() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file at its limit (ulimit -f) is as a full disk: write(2) fails
  if (Status status = check_openssl(options_.encrypt); !status.ok()) return status;
  // Before the server's thread: a fork copies only the thread that calls it.
  if (Status status = guardian_.start(); !status.ok()) return status;
  console_.emplace(io_, options_.end_with_stdin ? options_.host : "");
  // SIGUSR1 is a scheduler's warning.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) signals_.add(number);
  children_.add(SIGCHLD);
  wait_for_signal();
  wait_for_children();
  if (options_.end_with_stdin) starter_.emplace(io_, [this] { lose_starter(); });
  outputs_.emplace(
      WorkerOutputs::Place{options_.output_dir, options_.prefix, joined() ? options_.host : ""},
      *console_);
  if (Status status = outputs_->prepare(); !status.ok()) return status;
  job_ = {options_.join, options_.job, 0, static_cast<int>(std::thread::hardware_concurrency())};
  return options_.join.empty() ? start_server() : Status();
}

Status Launcher::Impl::start_server() {
  server_.emplace();
  if (Status status = server_->start(options_, secret_, environment_); !status.ok()) return status;
  job_.address = server_->address();
  if (const std::string shown = server_->shown_at(); !shown.empty()) say(shown);
  return {};
}

/// Before the server knows of this host, so that what takes long here delays no other.
void Launcher::Impl::prepare_host() {
  if (options_.prepare.empty()) return connect();
  const std::string name = joined() ? options_.host + ":prepare" : "prepare";
  preparation_.emplace(options_.prefix ? "[" + name + "] " : "", *console_);
  const Status status =
      preparation_->start(io_, options_.prepare, variables(environment_), guardian_.pipe());
  if (status.ok()) return;
  preparation_.reset();
  perform({Finish{exit_code::kNotPrepared, "--prepare: " + status.message()}});
}

void Launcher::Impl::end_preparation(const ExitStatus& status) {
  preparation_.reset();
  if (finished_) return;
  if (status.ok()) return connect();
  perform({Finish{exit_code::kNotPrepared, "--prepare: the command " + status.text()}});
}

void Launcher::Impl::connect() {
  started_ = Clock::now();
  JobConnection::Handlers handlers;
  handlers.on_state = [this](const JobStateChanged& state) {
    if (begun_) return decide(state);
    state_before_ = state;
  };
  handlers.on_spawn = [this](const SpawnWanted& spawn) { decide(spawn); };
  handlers.on_slots = [this](const SlotsChanged& slots) { decide(slots); };
  handlers.on_quarantine = [this](const QuarantineChanged& change) { decide(change); };
  handlers.on_enlisted = [this](const rendezvous::Enlisted& enlisted) { begin(enlisted); };
  handlers.on_no_connection = [this](const Status& why, Duration lost_for) {
    without_server(why, lost_for);
  };
  handlers.on_end_worker = [this](const rendezvous::EndWorker& told) { end_silent(told); };
  connection_.emplace(
      io_,
      rendezvous::Destination{job_.address,
                              secret_,
                              {rendezvous::kProtocolVersion, options_.job, "launcher"},
                              options_.encrypt},
      rendezvous::Enlist{random_id(), options_.host, options_.slots, 0, 0, options_.number},
      std::move(handlers));
}

/// The server knows this launcher, and its workers' names are known.
void Launcher::Impl::begin(const rendezvous::Enlisted& enlisted) {
  job_.name = enlisted.job;
  job_.launcher = enlisted.number;
  begun_ = true;
  if (state_before_ && joined()) {
    const auto end = end_of_latecomer(*state_before_, job_.address, !options_.end_with_stdin);
    if (end) return perform({*end});
  }
  perform(supervision_.begin(enlisted.quarantined, enlisted.returns.value_or(true)));
  watch_for_notice();
  if (state_before_) decide(*state_before_);
}

void Launcher::Impl::watch_for_notice() {
  if (!options_.notice) return;
  notice_.emplace(
      io_, *options_.notice, variables(environment_), guardian_.pipe(),
      notice::NoticeWatch::Handlers{[this](const notice::Notice& notice) {
                                      decide(NoticeCame{notice.text, notice.left, notice.late});
                                    },
                                    [this](const std::string& hint) { say(hint); },
                                    [this](const Status& error) {
                                      say("--notice: " + error.message() + "; it is asked again");
                                    }});
}

/// Once workers run, they train on without a server. The starter of an agent holds the server, and
/// ssh does not notice on this side that its machine is gone.
void Launcher::Impl::without_server(const Status& why, Duration lost_for) {
  if (finished_) return;
  if (begun_) {
    if (options_.end_with_stdin && lost_for >= kLongestAlone) return lose_starter();
    return decide(ServerMissing{std::chrono::duration_cast<Milliseconds>(lost_for)});
  }
  const bool may_come = why.code() == Code::kUnavailable;
  if (may_come && Clock::now() < started_ + options_.start_timeout) return;
  perform({Finish{may_come ? exit_code::kNoServer : exit_code::kRefused,
                  "cannot join the job: " + why.message()}});
}

void Launcher::Impl::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    wait_for_signal();
    if (++signals_heard_ >= kSignalsWithoutReader && finished_) return io_.stop();
    decide(SignalReceived{number});
  });
}

/// The reader of the output may be gone as well.
void Launcher::Impl::lose_starter() {
  signals_heard_ = std::max(signals_heard_, kSignalsWithoutReader);
  if (finished_) return io_.stop();
  decide(StarterGone{});
}

void Launcher::Impl::wait_for_children() {
  children_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    wait_for_children();
    collect_children();
  });
}

void Launcher::Impl::collect_children() {
  if (preparation_) {
    if (const auto status = preparation_->collect()) end_preparation(*status);
    return;
  }
  for (auto entry = workers_.begin(); entry != workers_.end();) {
    const pid_t pid = entry->second->pid();  // none once it is collected
    const auto status = entry->second->collect();
    if (!status) {
      ++entry;
      continue;
    }
    const int slot = entry->first;
    entry = workers_.erase(entry);
    tell_end(slot, status->ok() ? "" : status->text(), pid);
    connection_->ask_about(label(slot), [this, slot, ended = *status](const WorkerReport& report) {
      decide(WorkerExited{slot, ended, report});
    });
  }
  connection_->set_running(static_cast<int>(workers_.size()));
}

/// The server takes failures for a sign that this host is broken.
void Launcher::Impl::tell_end(int slot, const std::string& failure, pid_t pid) {
  const bool to_end = supervision_.ends_workers() || leaving_.contains(slot);
  connection_->tell_end(label(slot), to_end ? "" : failure, pid);
}

/// Asks again until they have ended: one that is not a member yet, or is the last, cannot leave.
void Launcher::Impl::remove_workers(const std::vector<int>& slots) {
  leaving_.insert(slots.begin(), slots.end());
  std::vector<std::string> labels;
  for (const int slot : leaving_) {
    if (workers_.contains(slot)) labels.push_back(label(slot));
  }
  if (labels.empty()) return leaving_.clear();
  connection_->request_removal(labels, [this](const std::string& why) { removal_refused(why); });
  ask_again_.expires_after(kAskAgain);
  ask_again_.async_wait([this](boost::system::error_code error) {
    if (!error) remove_workers({});
  });
}

/// Its meaning depends on the workers of other hosts.
void Launcher::Impl::removal_refused(const std::string& why) {
  if (std::exchange(asks_for_others_, true)) return;
  connection_->ask_status([this, why](const rendezvous::StatusReply* now) {
    asks_for_others_ = false;
    if (now != nullptr) decide(RemovalRefused{why, others_go_on(*now, job_.launcher)});
  });
}

/// Only the process that the server means: it may have ended meanwhile, and another one may have
/// its slot.
void Launcher::Impl::end_silent(const rendezvous::EndWorker& told) {
  const auto slot = rendezvous::parse_slot_label(told.label);
  if (!slot || slot->launcher != job_.launcher) return;
  const auto its = workers_.find(slot->number);
  if (its == workers_.end()) return;
  if (!its->second->has(told.pid)) return;
  decide(WorkerSilent{slot->number, std::to_string(told.pid), told.why});
}

void Launcher::Impl::perform(const std::vector<Action>& actions) {
  if (finished_) return;
  for (const auto& action : actions) {
    std::visit(
        Overloaded{
            [this](const StartWorker& start) { start_worker(start); },
            [this](const SignalWorkers& signal) {
              for (const auto& [slot, worker] : workers_) worker->signal(signal.number);
            },
            [this](const KillWorker& kill) {
              const auto its = workers_.find(kill.slot);
              if (its != workers_.end()) its->second->signal(SIGKILL);
            },
            [this](const RequestStop&) { connection_->request_stop(); },
            [this](const RequestDrain& drain) {
              connection_->request(rendezvous::LimitRequest{std::to_string(job_.launcher), 0,
                                                            drain.deadline.count()});
            },
            [this](const RequestRemoval& removal) { remove_workers(removal.slots); },
            [this](const RequestReplacement& request) {
              connection_->ask_for_replacement([this, slot = request.slot](bool placed) {
                if (placed) decide(WorkerReplaced{slot});
              });
            },
            [this](const Say& text) { say(text.text); },
            [this](const NameRunning& names) {
              if (!workers_.empty()) say(names.before + running_workers() + names.after);
            },
            [this](const ShowOutput& show) { outputs_->show_last_lines(show.slot, show.how); },
            [this](const Finish& finish) {
              if (!finish.reason.empty()) say(finish.reason);
              end_ = {finish.exit_code, finish.may_begin_anew};
              finished_ = true;
              console_->when_written(signals_heard_ >= kSignalsWithoutReader,
                                     [this] { io_.stop(); });
            },
        },
        action);
  }
  arm_timer();
}

void Launcher::Impl::start_worker(const StartWorker& start) {
  const Status status = try_start(start);
  if (status.ok()) return;
  // Not from within the list of actions that asked for it.
  boost::asio::post(io_, [this, slot = start.slot, reason = status.message()] {
    tell_end(slot, "could not be started: " + reason, 0);
    decide(WorkerNotStarted{slot, reason});
  });
}

Status Launcher::Impl::try_start(const StartWorker& start) {
  auto output = outputs_->of(start.slot, label(start.slot));
  if (!output.ok()) return output.status();
  // One for every worker, which closes it once it is read.
  auto secret_fd = secret_descriptor(secret_);
  if (!secret_fd.ok()) return secret_fd.status();
  auto child = start_child({
      .path = program_,
      .arguments = options_.command,
      .environment = worker_environment(environment_, options_, job_, start.slot, start.attempt,
                                        secret_fd.value().get()),
      .inherited_fd = secret_fd.value().get(),
      .guardian_pipe = guardian_.pipe(),
      .ignores_signals = options_.workers_ignore_signals,
      .terminal = options_.terminal,
  });
  if (!child.ok()) return child.status();
  if (!child.value().no_terminal.empty() && !std::exchange(told_of_pipes_, true)) {
    say("no pseudo-terminal for the workers' stdout (" + child.value().no_terminal +
        "): it is a pipe, and what a worker has not flushed is lost when it is killed");
  }
  auto worker = std::make_shared<WorkerProcess>(io_, std::move(child).value(), guardian_.pipe(),
                                                *output.value());
  worker->pump();
  workers_[start.slot] = std::move(worker);
  connection_->set_running(static_cast<int>(workers_.size()));
  return {};
}

std::string Launcher::Impl::running_workers() const {
  std::string names;
  for (const auto& [slot, worker] : workers_) {
    names += (names.empty() ? "worker " : ", worker ") + std::to_string(slot) + " (process " +
             std::to_string(worker->pid()) + (is_stopped(worker->pid()) ? ", stopped)" : ")");
  }
  return names;
}

void Launcher::Impl::arm_timer() {
  const TimePoint due = supervision_.next_tick();
  if (due == TimePoint::max()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(due);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) decide(TimePassed{});
  });
}

Launcher::Launcher(LaunchOptions options, const Secret& secret, std::string program,
                   Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), secret, std::move(program),
                                   std::move(environment))) {}
Launcher::~Launcher() = default;
JobEnd Launcher::run() {
  return impl_->run();
}

}  // namespace elastic::launcher
