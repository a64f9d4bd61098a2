#include "benchmarks/swarm/swarm_phases.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/secret.hpp"
#include "benchmarks/job/program_files.hpp"
#include "benchmarks/report/output_file.hpp"
#include "benchmarks/swarm/server_process.hpp"
#include "benchmarks/swarm/shared_unpacking.hpp"
#include "benchmarks/swarm/swarm.hpp"
#include "rendezvous/client/control_client.hpp"

namespace elastic::bench {

namespace {

constexpr const char* kJob = "swarm";
constexpr Milliseconds kStatusDeadline{10000};

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

/// One run: the server, its workers, and the times that they need.
class SwarmRun {
 public:
  explicit SwarmRun(const SwarmOptions& options) : options_(options), secret_(random_secret()) {}

  Result<SwarmTimes> run() {
    if (Status status = ScratchFolder::make(folder_); !status.ok()) return status;
    if (Status status = write_secret(); !status.ok()) return status;
    if (Status status = start_server("0"); !status.ok()) return status;
    swarm_.emplace(
        SwarmServer{server_.address(), kJob, secret_, std::make_shared<SharedUnpacking>()});
    times_.workers = options_.workers;
    times_.deaths = times_.joiners = options_.deaths;
    for (const auto phase : {&SwarmRun::form, &SwarmRun::idle, &SwarmRun::lose_one,
                             &SwarmRun::lose_many, &SwarmRun::lose_server, &SwarmRun::join}) {
      if (Status status = (this->*phase)(); !status.ok()) return status;
    }
    return times_;
  }

 private:
  Status write_secret() {
    const auto file = folder_.path() / "secret";
    if (Status status = write_file("--secret-file", file, to_hex(secret_)); !status.ok()) {
      return status;
    }
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    return {};
  }

  Status start_server(const std::string& port) {
    return server_.start({options_.server, "--np", std::to_string(options_.workers), "--job", kJob,
                          "--port", port, "--secret-file", (folder_.path() / "secret").string(),
                          "--journal", (folder_.path() / "journal").string(), "--log-level",
                          "warn"});
  }

  /// Runs the members until `done`. \returns the seconds that it took.
  Result<double> time_until(const std::string& what, const std::function<bool()>& done) {
    const TimePoint began = Clock::now();
    if (swarm_->run_until(done, options_.phase_limit)) return seconds(Clock::now() - began);
    return Status(Code::kTimeout,
                  what + " took more than " + std::to_string(options_.phase_limit.count()) +
                      " ms: of " + std::to_string(swarm_->size()) + " workers " +
                      std::to_string(swarm_->connected()) + " are connected, " +
                      std::to_string(swarm_->ended()) + " have ended" +
                      (swarm_->ended() > 0 ? ", one with: " + swarm_->first_end() : ""));
  }

  /// The same, until all members are in one view.
  Status time_agreement(const std::string& what, double& result) {
    const auto took = time_until(what, [this] { return swarm_->agrees(); });
    if (took.ok()) result = took.value();
    return took.status();
  }

  Status form() {
    swarm_->add(options_.workers);
    return time_agreement("forming", times_.form_s);
  }

  Status idle() {
    const Duration before = server_.processor_time();
    const auto length = std::chrono::seconds(options_.idle_s);
    swarm_->run_until([] { return false; }, length);
    times_.idle_cpu_percent = 100 * seconds(server_.processor_time() - before) / seconds(length);
    return {};
  }

  Status lose_one() {
    swarm_->kill(1);
    const std::uint64_t before = swarm_->received_bytes();
    const Duration used = server_.processor_time();
    if (Status status = time_agreement("the loss of one", times_.death_s); !status.ok()) {
      return status;
    }
    times_.death_server_s = seconds(server_.processor_time() - used);
    times_.bytes_per_member_death = static_cast<double>(swarm_->received_bytes() - before) /
                                    static_cast<double>(swarm_->size());
    return {};
  }

  Status lose_many() {
    swarm_->count_anew();
    swarm_->kill(options_.deaths);
    Status status = time_agreement("the loss of many", times_.deaths_s);
    times_.deaths_rounds = swarm_->rounds();
    times_.deaths_views = swarm_->views();
    return status;
  }

  Status lose_server() {
    const TimePoint began = Clock::now();
    const std::size_t ended = swarm_->ended();
    const std::string address = server_.address();
    server_.kill();
    const auto lost =
        time_until("the loss of the server", [this] { return swarm_->connected() == 0; });
    if (!lost.ok()) return lost.status();
    if (Status status = start_server(address.substr(address.rfind(':') + 1)); !status.ok()) {
      return status;
    }
    const auto back = time_until("the return of the server",
                                 [this] { return swarm_->connected() == swarm_->size(); });
    if (!back.ok()) return back.status();
    while (true) {
      const auto answer =
          rendezvous::request(address, kJob, secret_, rendezvous::StatusRequest{}, kStatusDeadline);
      if (!answer.ok()) return answer.status();
      const auto* reply = std::get_if<rendezvous::StatusReply>(&answer.value());
      if (reply != nullptr && reply->phase == "running") break;
      swarm_->run_until([] { return false; }, Milliseconds(10));
    }
    times_.server_return_s = seconds(Clock::now() - began);
    times_.evicted = swarm_->ended() - ended;
    return {};
  }

  Status join() {
    swarm_->add(options_.deaths);
    return time_agreement("the arrival of joiners", times_.join_s);
  }

  const SwarmOptions& options_;
  const Secret secret_;
  ScratchFolder folder_;
  ServerProcess server_;
  std::optional<Swarm> swarm_;
  SwarmTimes times_;
};

}  // namespace

Result<SwarmTimes> measure_swarm(const SwarmOptions& options) {
  return SwarmRun(options).run();
}

}  // namespace elastic::bench
