#include "runtime/join_job.hpp"

#include "base/config/launch_environment.hpp"
#include "base/secret_descriptor.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "runtime/mpirun_server.hpp"
#include "runtime/view_assembly.hpp"

namespace elastic::runtime {

namespace {

Result<Secret> read_secret(const Options& options) {
  if (!options.secret_file.empty()) return read_secret_file(options.secret_file);
  if (options.secret_fd >= 0) return read_secret_fd(options.secret_fd);
  return Status(Code::kInvalidArgument,
                "the rendezvous server at " + options.rendezvous +
                    " wants the job's secret: set ELASTIC_SECRET_FILE or ELASTIC_SECRET_FD");
}

}  // namespace

void draw_incarnation(Identity& identity) {
  identity.incarnation = random_id();
  identity.id = worker_id(identity.incarnation);
}

Result<Identity> find_job(Options& options, const EnvironmentMap& environment) {
  Result<LaunchEnvironment> launch = read_launch_environment(environment);
  if (!launch.ok() && options.rendezvous.empty()) return launch.status();
  if (launch.ok() && options.slot < 0) options.slot = launch.value().rank;

  Identity identity;
  draw_incarnation(identity);
  if (launch.ok()) {
    identity.local_rank = launch.value().local_rank;
    identity.under_mpirun = launch.value().under_mpirun();
  }
  if (options.rendezvous.empty()) {
    Result<ServerLocation> server =
        find_or_start_server(launch.value(), options.job, environment, options.encrypt,
                             Clock::now() + options.init_timeout);
    if (!server.ok()) return server.status();
    identity.address = server.value().address;
    identity.job = server.value().job;
    identity.secret = server.value().secret;
    identity.starter = server.value().starter;
    return identity;
  }
  if (const auto servers = rendezvous::parse_addresses(options.rendezvous); !servers.ok()) {
    return Status(servers.status().code(),
                  "ELASTIC_RENDEZVOUS (Options::rendezvous): " + servers.status().message());
  }
  Result<Secret> secret = read_secret(options);
  if (!secret.ok()) return secret.status();
  identity.address = options.rendezvous;
  identity.job = options.job;
  identity.secret = secret.value();
  return identity;
}

}  // namespace elastic::runtime
