// Finds or starts its job's server as a worker under mpirun does, joins until a view is announced,
// and writes the view's size, the server's address and the job to <folder>/<rank>.
#include <cstdio>
#include <fstream>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/config/environment.hpp"
#include "base/config/launch_environment.hpp"
#include "base/handshake.hpp"
#include "rendezvous/client/client.hpp"
#include "runtime/mpirun_server.hpp"

namespace {

using namespace elastic;

constexpr Milliseconds kTimeLimit{20000};

int fail(const Status& status) {
  std::fprintf(stderr, "server_seeker: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const EnvironmentMap environment = read_environment();
  const auto launch = read_launch_environment(environment);
  if (!launch.ok()) return fail(launch.status());
  const auto server = runtime::find_or_start_server(launch.value(), "", environment, false,
                                                    Clock::now() + kTimeLimit);
  if (!server.ok()) return fail(server.status());

  boost::asio::io_context io(1);
  rendezvous::ClientOptions options;
  options.address = server.value().address;
  options.job = server.value().job;
  options.secret = server.value().secret;
  rendezvous::Register registration;
  registration.incarnation = random_id();
  registration.order = launch.value().rank;
  options.registration = [&] { return registration; };
  Status failure;
  std::size_t members = 0;
  rendezvous::Client client(io, options,
                            {[&](const rendezvous::Message& message) {
                               const auto* announce = std::get_if<rendezvous::Announce>(&message);
                               if (announce == nullptr) return;
                               members = announce->view->members.size();
                               io.stop();
                             },
                             [&](const Status& status) {
                               failure = status;
                               io.stop();
                             }});
  client.start();
  io.run_for(kTimeLimit);
  if (!failure.ok()) return fail(failure);
  std::ofstream(std::string(argv[1]) + "/" + std::to_string(launch.value().rank))
      << members << " " << server.value().address << " " << server.value().job;
  return 0;
}
