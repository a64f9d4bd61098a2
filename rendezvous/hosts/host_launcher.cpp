#include "rendezvous/hosts/host_launcher.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/openssl_check.hpp"
#include "base/overloaded.hpp"
#include "rendezvous/hosts/address_toward.hpp"
#include "rendezvous/hosts/agent_command.hpp"
#include "rendezvous/hosts/host_source.hpp"
#include "rendezvous/hosts/host_supervision.hpp"
#include "rendezvous/hosts/missing_workers.hpp"
#include "rendezvous/launcher/console.hpp"
#include "rendezvous/launcher/exit_code.hpp"
#include "rendezvous/launcher/guardian.hpp"
#include "rendezvous/launcher/job_connection.hpp"
#include "rendezvous/launcher/job_server.hpp"
#include "rendezvous/launcher/program_path.hpp"
#include "rendezvous/launcher/supervision_text.hpp"
#include "rendezvous/launcher/worker_environment.hpp"
#include "rendezvous/launcher/worker_output.hpp"
#include "rendezvous/launcher/worker_process.hpp"

namespace elastic::hosts {

namespace exit_code = launcher::exit_code;
using launcher::Console;
using launcher::Guardian;
using launcher::JobConnection;
using launcher::JobServer;
using launcher::LaunchOptions;
using launcher::variables;
using launcher::WorkerOutput;
using launcher::WorkerProcess;

namespace {

/// Between counts of the workers on each host.
constexpr Milliseconds kBetweenCounts{500};
/// From so many signals on, the reader of the rest of the output is not waited for.
constexpr int kSignalsWithoutReader = 2;

HostSupervisionOptions supervision_options(const LaunchOptions& options) {
  HostSupervisionOptions made;
  made.np = options.np;
  made.max_np = options.max_np;
  made.placement = options.hosts.pack ? Placement::kPack : Placement::kSpread;
  made.start = options.start_timeout;
  made.prepares = !options.prepare.empty();
  made.drain = options.drain;
  made.exit = options.exit;
  return made;
}

std::string path_of_this_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "elasticrun" : path.string();
}

}  // namespace

class HostLauncher::Impl {
 public:
  Impl(LaunchOptions options, const Secret& secret, Environment environment)
      : options_(std::move(options)),
        environment_(std::move(environment)),
        secret_(secret),
        supervision_(supervision_options(options_)) {}

  launcher::JobEnd run();

 private:
  /// A host's agent: the process of ssh, and the pipe to its stdin.
  struct Agent {
    std::unique_ptr<WorkerOutput> output;
    std::shared_ptr<WorkerProcess> process;
    UniqueFd input;
  };

  Status prepare();
  Status prepare_agents();
  Status take_first_list();
  void connect();
  void watch_hosts();
  void take(const Result<HostList>& hosts);
  void warn_of_repeated_names(const HostList& hosts);
  void wait_for_signal();
  void wait_for_children();
  void collect_agents();
  void count_workers();
  void decide(const Event& event) { perform(supervision_.decide(event, Clock::now())); }
  void perform(const std::vector<Action>& actions);
  void perform(const Finish& finish);
  void end(const Finish& finish);
  void start_agent(const StartAgent& start);
  boost::asio::awaitable<void> find_address_and_start(StartAgent start);
  Status start_process(const StartAgent& start, const std::string& server);
  std::string command_to(const std::string& host) const;
  void arm_timer();
  void say(const std::string& text) { console_->say(text); }
  std::string list_limit() const {
    return launcher::seconds(options_.start_timeout) + " (--start-timeout-ms)";
  }
  std::string port() const {
    const std::string& address = server_->address();
    return address.substr(address.find_last_of(':'));
  }
  bool watches() const { return !options_.hosts.file.empty() || !options_.hosts.script.empty(); }

  LaunchOptions options_;
  const Environment environment_;
  const Secret secret_;
  HostSupervision supervision_;
  // First made, last gone: it kills what is left after everything else.
  Guardian guardian_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_{io_};
  boost::asio::signal_set children_{io_};
  boost::asio::steady_timer timer_{io_};
  boost::asio::steady_timer next_count_{io_};
  boost::asio::steady_timer list_due_{io_};
  AgentSetting setting_;
  std::string ssh_;  // its path
  std::optional<JobServer> server_;
  std::optional<JobConnection> connection_;
  std::optional<HostSource> source_;
  HostList first_list_;
  std::set<std::string> told_names_;  // of hosts that the list has twice
  std::string list_error_;            // why there is none yet
  std::optional<Console> console_;
  std::map<std::string, Agent> agents_;  // by host, alive
  std::optional<int> began_;             // workers of the first view; none: it was not seen
  int signals_heard_ = 0;
  bool agents_end_ = false;  // none is to be started any more
  bool finished_ = false;
  launcher::JobEnd end_;
};

launcher::JobEnd HostLauncher::Impl::run() {
  if (Status status = prepare(); !status.ok()) {
    launcher::write_whole(STDERR_FILENO, Console::line_of(status.message()));
    return {status.code() == Code::kInvalidArgument ? exit_code::kWrongUsage : exit_code::kFailed};
  }
  connect();
  if (!first_list_.empty()) {
    warn_of_repeated_names(first_list_);
    decide(ListChanged{first_list_});
  }
  watch_hosts();
  count_workers();
  io_.run();
  if (end_.exit_code == exit_code::kDone && console_->has_lost_output()) {
    end_.exit_code = exit_code::kFailed;
  }
  return end_;
}

Status HostLauncher::Impl::prepare() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  if (Status status = check_openssl(options_.encrypt); !status.ok()) return status;
  if (Status status = prepare_agents(); !status.ok()) return status;
  // Before the threads of the console and the server: a fork copies only the thread that calls it.
  if (Status status = guardian_.start(); !status.ok()) return status;
  console_.emplace(io_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) signals_.add(number);
  children_.add(SIGCHLD);
  wait_for_signal();
  wait_for_children();
  server_.emplace();
  Status status = server_->start(options_, secret_, environment_);
  if (const std::string shown = server_->shown_at(); !shown.empty()) say(shown);
  return status;
}

Status HostLauncher::Impl::prepare_agents() {
  auto chosen = environment_of_agents(options_.hosts.variables, environment_);
  if (!chosen.ok()) return chosen.status();
  std::error_code error;
  setting_ = {path_of_this_program(), std::filesystem::current_path(error).string(),
              std::move(chosen).value()};
  if (Status status = take_first_list(); !status.ok()) return status;
  const bool all_here = std::all_of(first_list_.begin(), first_list_.end(),
                                    [](const Host& host) { return is_this_machine(host.name); });
  if (all_here && !watches()) {
    options_.bind = options_.bind == "0.0.0.0" ? "127.0.0.1" : options_.bind;
    return {};
  }
  // Of this host's workers, too: others connect to them.
  setting_.environment.try_emplace("ELASTIC_BIND", "0.0.0.0");
  const auto search_path = environment_.find("PATH");
  const std::string name = options_.hosts.ssh.substr(0, options_.hosts.ssh.find(' '));
  auto found =
      launcher::find_program(name, search_path == environment_.end() ? "" : search_path->second);
  if (!found.ok()) return Status(found.status().code(), "--ssh: " + found.status().message());
  ssh_ = found.value();
  return {};
}

/// Of --hosts. Files and scripts are read later, again and again.
Status HostLauncher::Impl::take_first_list() {
  if (watches()) return {};
  auto hosts = parse_host_list(options_.hosts.list, std::max(options_.slots, 1), "--hosts");
  if (!hosts.ok()) return hosts.status();
  const int slots = total_slots(hosts.value());
  const int needed = std::max({options_.np, options_.min_np, 1});
  if (slots < needed) {
    return Status(Code::kInvalidArgument, "--hosts " + options_.hosts.list + ": there are " +
                                              std::to_string(slots) + " slots, and " +
                                              std::to_string(needed) +
                                              " workers are needed (-np, --min-np); write "
                                              "HOST:SLOTS");
  }
  first_list_ = std::move(hosts).value();
  if (options_.np == 0) options_.np = options_.job_np = slots;
  return {};
}

void HostLauncher::Impl::connect() {
  JobConnection::Handlers handlers;
  handlers.on_state = [this](const JobStateChanged& state) { decide(state); };
  // Without slots: it only watches.
  connection_.emplace(
      io_,
      rendezvous::Destination{server_->address(),
                              secret_,
                              {rendezvous::kProtocolVersion, options_.job, "launcher"},
                              options_.encrypt},
      rendezvous::Enlist{random_id(), "", 0, 0, 0, std::nullopt}, std::move(handlers));
}

void HostLauncher::Impl::watch_hosts() {
  if (!watches()) return;
  list_due_.expires_after(options_.start_timeout);
  list_due_.async_wait([this](boost::system::error_code error) {
    if (error || finished_ || !first_list_.empty()) return;
    perform(Finish{exit_code::kFailed, "there was no list of hosts within " + list_limit() +
                                           launcher::because(list_error_)});
  });
  source_.emplace(
      io_,
      HostSource::Place{options_.hosts.file, options_.hosts.script, std::max(options_.slots, 1),
                        variables(environment_), guardian_.pipe()},
      [this](const Result<HostList>& hosts) { take(hosts); });
}

void HostLauncher::Impl::take(const Result<HostList>& hosts) {
  if (!hosts.ok() && first_list_.empty() && !options_.hosts.file.empty()) {
    return perform(Finish{exit_code::kWrongUsage, hosts.status().message()});
  }
  if (!hosts.ok()) {
    list_error_ = hosts.status().message();
    say(list_error_ + (first_list_.empty()
                           ? "; waiting for a list of hosts, for at most " + list_limit()
                           : "; going on with the list of hosts before"));
    return;
  }
  if (total_slots(hosts.value()) == 0) {
    list_error_ = "the list of hosts is empty";
    return say(first_list_.empty() ? list_error_ + ": waiting for one, for at most " + list_limit()
                                   : "the list of hosts is empty; going on with the list before "
                                     "(elasticrun ctl stop ends the job)");
  }
  first_list_ = hosts.value();
  warn_of_repeated_names(hosts.value());
  decide(ListChanged{hosts.value()});
}

/// Once, although the list is read again and again.
void HostLauncher::Impl::warn_of_repeated_names(const HostList& hosts) {
  for (const std::string& line : repeated_names(hosts)) {
    if (told_names_.insert(line).second) say(line);
  }
}

void HostLauncher::Impl::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    wait_for_signal();
    if (++signals_heard_ >= kSignalsWithoutReader && finished_) return io_.stop();
    if (first_list_.empty())
      return perform(Finish{exit_code::kFailed, "stopped before there was a list of hosts"});
    decide(SignalReceived{number});
  });
}

void HostLauncher::Impl::wait_for_children() {
  children_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    wait_for_children();
    collect_agents();
  });
}

void HostLauncher::Impl::collect_agents() {
  std::vector<AgentEnded> ended;
  for (auto entry = agents_.begin(); entry != agents_.end();) {
    const auto status = entry->second.process->collect();
    if (!status) {
      ++entry;
      continue;
    }
    const auto& lines = entry->second.output->last_lines();
    std::string last = lines.empty() ? "" : lines.back();
    if (last.ends_with('\r')) last.pop_back();  // ssh ends its lines for a terminal
    ended.push_back({entry->first, *status, std::move(last), command_to(entry->first)});
    entry = agents_.erase(entry);
  }
  for (const AgentEnded& event : ended) decide(event);
}

/// As a person would write it.
std::string HostLauncher::Impl::command_to(const std::string& host) const {
  if (is_this_machine(host)) return "";
  const std::string& more = options_.hosts.ssh_arguments;
  return options_.hosts.ssh + (more.empty() ? "" : " " + more) + " " + host;
}

void HostLauncher::Impl::count_workers() {
  connection_->ask_status([this](const rendezvous::StatusReply* reply) {
    if (reply == nullptr || !reply->launchers) return;
    if (reply->view.generation == 1) began_ = static_cast<int>(reply->view.members.size());
    Counted counted{{}, {}, reply->joinable};
    for (const auto& launcher : *reply->launchers) {
      if (launcher.quarantine) counted.quarantined.insert(launcher.host);
      if (!launcher.connected) continue;
      counted.running[launcher.host] += launcher.running;
      if (launcher.slots == 0) counted.drained.insert(launcher.host);
    }
    decide(counted);
  });
  next_count_.expires_after(kBetweenCounts);
  next_count_.async_wait([this](boost::system::error_code error) {
    if (!error && !finished_) count_workers();
  });
}

void HostLauncher::Impl::perform(const std::vector<Action>& actions) {
  if (finished_) return;
  for (const auto& action : actions) {
    std::visit(
        Overloaded{
            [this](const StartAgent& start) { start_agent(start); },
            [this](const LimitHost& limit) {
              connection_->request(rendezvous::LimitRequest{limit.host, limit.slots, std::nullopt});
            },
            [this](const EndAgents&) {
              agents_end_ = true;
              for (auto& [host, agent] : agents_) agent.input.reset();
            },
            [this](const KillAgents&) {
              agents_end_ = true;
              for (auto& [host, agent] : agents_) agent.process->signal(SIGKILL);
            },
            [this](const KillAgent& agent) {
              const auto found = agents_.find(agent.host);
              if (found != agents_.end()) found->second.process->signal(SIGKILL);
            },
            [this](const Expect& expect) {
              connection_->request(rendezvous::ExpectRequest{expect.workers});
            },
            [this](const AddWorkers& add) {
              connection_->request(rendezvous::AddRequest{add.count, true});
            },
            [this](const RequestStop&) { connection_->request_stop(); },
            [this](const Say& text) { say(text.text); },
            [this](const Finish& finish) { perform(finish); },
        },
        action);
  }
  arm_timer();
}

/// The server knows what became of the workers of all hosts.
void HostLauncher::Impl::perform(const Finish& finish) {
  if (finish.exit_code != exit_code::kDone || !finish.reason.empty()) return end(finish);
  connection_->ask_status([this, finish](const rendezvous::StatusReply* last) {
    const bool done = last != nullptr && last->phase == "done";
    if (!done) return end(finish);
    // A first view that lasted for less than a second was not seen.
    const int began = began_.value_or(std::min(supervision_.expected(), known_workers(*last)));
    end({finish.exit_code, missing_workers(began, *last)});
  });
}

void HostLauncher::Impl::end(const Finish& finish) {
  if (!finish.reason.empty()) say(finish.reason);
  end_ = {finish.exit_code, finish.may_begin_anew};
  finished_ = true;
  console_->when_written(signals_heard_ >= kSignalsWithoutReader, [this] { io_.stop(); });
}

void HostLauncher::Impl::start_agent(const StartAgent& start) {
  boost::asio::co_spawn(
      io_, [this, start] { return find_address_and_start(start); },
      [](std::exception_ptr thrown) {
        if (thrown) std::rethrow_exception(thrown);
      });
}

boost::asio::awaitable<void> HostLauncher::Impl::find_address_and_start(StartAgent start) {
  std::string server = server_->address();
  const bool bound_to_one = options_.bind != "0.0.0.0" && options_.bind != "::";
  if (!is_this_machine(start.host) && !bound_to_one) {
    server = co_await address_toward(start.host) + port();
  }
  const Status started =
      agents_end_ ? Status(Code::kStopped, "the job ends") : start_process(start, server);
  if (started.ok()) co_return;
  decide(AgentEnded{start.host, {.code = 1, .signal = 0}, started.message()});
}

Status HostLauncher::Impl::start_process(const StartAgent& start, const std::string& server) {
  const bool local = is_this_machine(start.host);
  auto child = launcher::start_child(
      {.path = local ? "/bin/sh" : ssh_,
       .arguments = agent_arguments(options_.hosts, start.host, local,
                                    agent_script(options_, setting_, server, start)),
       .environment = variables(environment_),
       .guardian_pipe = guardian_.pipe(),
       .input = true});
  if (!child.ok()) return child.status();
  Agent agent;
  agent.input = std::move(child.value().input);
  agent.output = std::make_unique<WorkerOutput>("", console_->output(), console_->errors());
  agent.process = std::make_shared<WorkerProcess>(io_, std::move(child).value(), guardian_.pipe(),
                                                  *agent.output);
  agent.process->pump();
  const SecretText line(to_hex(secret_) + "\n");
  // The pipe is empty, so that it takes a line whole.
  launcher::write_whole(agent.input.get(), line.text());
  agents_[start.host] = std::move(agent);
  return {};
}

void HostLauncher::Impl::arm_timer() {
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

HostLauncher::HostLauncher(LaunchOptions options, const Secret& secret, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), secret, std::move(environment))) {}
HostLauncher::~HostLauncher() = default;
launcher::JobEnd HostLauncher::run() {
  return impl_->run();
}

}  // namespace elastic::hosts
