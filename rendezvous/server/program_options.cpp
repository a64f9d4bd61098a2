#include "rendezvous/server/program_options.hpp"

#include <cstdint>
#include <sstream>

#include <CLI/CLI.hpp>

#include "rendezvous/protocol/without_brackets.hpp"

namespace elastic::rendezvous {

namespace {

constexpr int kUsageError = 2;

/// The rest of what CLI11 fills in.
struct Arguments {
  std::string store;
  std::int64_t evict_after;
  std::int64_t heartbeat;
  std::int64_t start_timeout;
  std::int64_t below_minimum_timeout;
  std::int64_t return_window;
  std::int64_t max_join_stall;
  std::int64_t disconnect_grace;
  std::int64_t outage_window;
  std::int64_t first_worker;
  std::int64_t lease_seconds;
};

/// The mistake in the options of a server that has standbys; empty: there is none.
std::string store_contradiction(const ProgramOptions& options, const Arguments& arguments) {
  const etcd::EtcdOptions& store = options.store;
  const bool has_details = !store.ca.empty() || !store.certificate.empty() || !store.key.empty() ||
                           !store.user.empty() || !options.password_file.empty();
  if (arguments.store.empty()) {
    return has_details ? "--store-ca, --store-cert, --store-key, --store-user and "
                         "--store-password-file need --store"
                       : "";
  }
  if (!options.server.journal.empty()) return "the journal is in --store: leave out --journal";
  if (!options.connection_file.empty()) {
    return "--connection-file names one server, and --store is for several: give workers "
           "ELASTIC_RENDEZVOUS, or elasticrun --join, with the addresses of all";
  }
  if (options.server.job.empty() || options.secret_file.empty() || options.server.port == 0) {
    return "--store needs --job, --secret-file and --port: all servers of a job have its name and "
           "secret, and workers know their addresses beforehand";
  }
  if (store.certificate.empty() != store.key.empty()) {
    return "--store-cert and --store-key need each other";
  }
  if (!store.certificate.empty() && store.ca.empty()) return "--store-cert needs --store-ca";
  if (store.user.empty() != options.password_file.empty()) {
    return "--store-user and --store-password-file need each other";
  }
  return {};
}

/// Options that are for others which were not given.
std::string without_effect(const CLI::App& app) {
  for (const auto& [option, needed] :
       {std::pair{"--lease-seconds", "--store"},
        std::pair{"--first-worker-timeout-ms", "--exit-when-done"}}) {
    if (app.get_option(option)->count() == 0 || app.get_option(needed)->count() > 0) continue;
    return std::string(option) + " has no effect without " + needed;
  }
  return {};
}

std::string contradiction(const MembershipOptions& m, const Arguments& arguments) {
  const auto text = [](const char* name, int value) {
    return std::string(name) + " (" + std::to_string(value) + ")";
  };
  if (m.min_np > m.initial_np) {
    return text("--min-np", m.min_np) + " is more than " + text("--np", m.initial_np);
  }
  if (m.max_np != 0 && m.max_np < m.initial_np) {
    return text("--max-np", m.max_np) + " is less than " + text("--np", m.initial_np);
  }
  if (arguments.evict_after <= arguments.heartbeat) {
    return "--evict-after-ms must be more than --heartbeat-ms";
  }
  return {};
}

void declare_store(CLI::App& app, ProgramOptions& options, Arguments& arguments) {
  etcd::EtcdOptions& store = options.store;
  app.add_option("--store", arguments.store,
                 "etcd:HOST:PORT,HOST:PORT,...: keeps views in etcd in place of --journal; of the "
                 "servers that are started so for one job, one leads, and the others stand by");
  app.add_option("--lease-seconds", arguments.lease_seconds,
                 "with --store: how long after its last word a server that leads is waited for")
      ->check(CLI::Range(2, 600))
      ->capture_default_str();
  app.add_option("--store-ca", store.ca,
                 "certificates to trust, PEM: etcd is reached under TLS (https)");
  app.add_option("--store-cert", store.certificate, "this server's own certificate for etcd, PEM");
  app.add_option("--store-key", store.key, "the private key of --store-cert, PEM");
  app.add_option("--store-user", store.user, "a user of etcd");
  app.add_option("--store-password-file", options.password_file,
                 "file with the password of --store-user, for this user alone");
}

void declare(CLI::App& app, ProgramOptions& options, Arguments& arguments) {
  ServerOptions& server = options.server;
  MembershipOptions& membership = server.membership;
  app.add_option("--bind", server.bind, "address to listen on")->capture_default_str();
  app.add_option("--port", server.port, "port to listen on; 0: any")->capture_default_str();
  app.add_option("--np", membership.initial_np, "workers that make the first view")
      ->check(CLI::Range(1, 1 << 20))
      ->required();
  app.add_option("--min-np", membership.min_np, "fewer cannot go on")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-np", membership.max_np, "more are kept waiting; 0: no bound")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-connections", server.max_connections,
                 "connections of workers, launchers and others at a time; 0: as many as there are "
                 "descriptors")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--job", server.job, "the job's name; drawn at random unless given");
  app.add_option("--secret-file", options.secret_file,
                 "file with the job's secret, 64 hex digits; one is made unless given");
  app.add_flag("--encrypt", server.encrypt,
               "use TLS on every connection; workers then need ELASTIC_ENCRYPT=1");
  app.add_option(
      "--port-file", options.port_file,
      "where to write the address and the process id as JSON once listening; a file that "
      "is there is replaced");
  app.add_option("--connection-file", options.connection_file,
                 "where to write the address and the secret, for this user alone; elasticrun "
                 "--connection-file joins by it. A file that is there is replaced; it is removed "
                 "at the end");
  app.add_option("--job-record", options.job_record,
                 "file about this server that its starter writes; it is removed at the end");
  app.add_option("--journal", server.journal, "file that views are written to before they hold");
  declare_store(app, options, arguments);
  app.add_option("--event-log", server.event_log,
                 "file to append to what happens to the job, as lines of JSON");
  app.add_option(
      "--http", server.http,
      "address and port to show the job at over HTTP: a page, /metrics and /status.json; "
      "port 0: any. Readable by all that reach it");
  app.add_flag(
      "--exit-when-done", options.exit_when_done,
      "end when the job is over, with code 1 if it failed; when all workers have been gone "
      "for 10 s before it began; or, with code 1, when none has come within "
      "--first-worker-timeout-ms");
  app.add_option(
         "--starter-fd", options.starter_fd,
         "a pipe whose write end the process that starts this server holds: with "
         "--exit-when-done the server ends 2 s after the pipe does, unless a worker has come")
      ->check(CLI::Range(0, 1 << 20));
  const CLI::Range period(1, 86400000);
  app.add_option("--evict-after-ms", arguments.evict_after,
                 "silence after which a member is given up")
      ->check(period)
      ->capture_default_str();
  app.add_option("--heartbeat-ms", arguments.heartbeat, "period of the members' heartbeats")
      ->check(period)
      ->capture_default_str();
  app.add_option("--start-timeout-ms", arguments.start_timeout,
                 "after which --min-np workers make the first view")
      ->check(period)
      ->capture_default_str();
  app.add_option("--below-minimum-timeout-ms", arguments.below_minimum_timeout,
                 "how long fewer than --min-np workers wait for joiners")
      ->check(period)
      ->capture_default_str();
  app.add_option("--first-worker-timeout-ms", arguments.first_worker,
                 "how long --exit-when-done waits for the first worker")
      ->check(period)
      ->capture_default_str();
  app.add_option(
         "--return-window-ms", arguments.return_window,
         "how long a server that was started again, or has lost most connections, waits for the "
         "members")
      ->check(period)
      ->capture_default_str();
  app.add_option("--disconnect-grace-ms", arguments.disconnect_grace,
                 "how long a member whose connection is lost may take to come back, where nothing "
                 "proves its end; --evict-after-ms if that is longer")
      ->check(period)
      ->capture_default_str();
  app.add_option("--outage-window-ms", arguments.outage_window,
                 "how long the first member may take to come back where the connections of all are "
                 "lost, and nothing proves their end")
      ->check(period)
      ->capture_default_str();
  app.add_option("--max-join-stall-ms", arguments.max_join_stall,
                 "a joiner that takes longer to receive the state is kept waiting")
      ->check(period)
      ->capture_default_str();
  app.add_option("--quarantine-seconds", options.quarantine_seconds,
                 "no worker is started for so long on a host where several have failed, while "
                 "others take workers; twice as long after each further failure, at most half an "
                 "hour; 0: never")
      ->check(CLI::Range(0, 1800))
      ->capture_default_str();
  app.add_flag("--adopt-any", membership.adopt_any,
               "with the journal lost, go on in the newest view that any member reports, though no "
               "majority of its members is there");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

}  // namespace

ParsedProgram parse_program(int argc, const char* const* argv) {
  CLI::App app("Rendezvous server of one elastic job: keeps the list of its members.",
               "elastic-rendezvous");
  ParsedProgram parsed;
  ProgramOptions& options = parsed.options;
  MembershipOptions& membership = options.server.membership;
  Arguments arguments{{},
                      membership.evict_after.count(),
                      membership.heartbeat.count(),
                      membership.start_timeout.count(),
                      membership.below_minimum_timeout.count(),
                      membership.return_window.count(),
                      membership.max_join_stall.count(),
                      membership.disconnect_grace.count(),
                      membership.outage_window.count(),
                      options.server.first_worker.count(),
                      std::chrono::round<std::chrono::seconds>(options.lease).count()};
  declare(app, options, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    const int code = app.exit(error, out, out);
    parsed.exit_code = code == 0 ? 0 : kUsageError;
    parsed.text = (code == 0 ? "" : "elastic-rendezvous: ") + out.str();
    return parsed;
  }
  membership.evict_after = Milliseconds(arguments.evict_after);
  membership.heartbeat = Milliseconds(arguments.heartbeat);
  membership.start_timeout = Milliseconds(arguments.start_timeout);
  membership.below_minimum_timeout = Milliseconds(arguments.below_minimum_timeout);
  membership.return_window = Milliseconds(arguments.return_window);
  membership.max_join_stall = Milliseconds(arguments.max_join_stall);
  membership.disconnect_grace = Milliseconds(arguments.disconnect_grace);
  membership.outage_window = Milliseconds(arguments.outage_window);
  options.server.bind = without_brackets(options.server.bind);
  options.server.first_worker = Milliseconds(arguments.first_worker);
  options.server.quarantine.first_pause = std::chrono::seconds(options.quarantine_seconds);
  options.lease = std::chrono::seconds(arguments.lease_seconds);
  std::string wrong = without_effect(app);
  if (wrong.empty()) wrong = contradiction(membership, arguments);
  if (wrong.empty()) wrong = store_contradiction(options, arguments);
  if (wrong.empty() && !arguments.store.empty()) {
    auto members = etcd::parse_store(arguments.store);
    wrong = members.status().message();
    if (members.ok()) options.store.members = std::move(members).value();
  }
  if (!wrong.empty()) {
    parsed.exit_code = kUsageError;
    parsed.text = "elastic-rendezvous: " + wrong + "\n";
  }
  return parsed;
}

}  // namespace elastic::rendezvous
