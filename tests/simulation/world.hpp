#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model_worker.hpp"
#include "rendezvous/membership/membership.hpp"

namespace elastic::simulation {

/// What happens in a run; all of it drawn from the seed.
struct Scenario {
  explicit Scenario(std::uint64_t seed_);

  std::uint64_t seed;
  rendezvous::MembershipOptions options;
  std::uint64_t steps = 0;
  bool uses_run = true;
  Milliseconds faults_until{0};
  unsigned kills = 0;
  unsigned pauses = 0;
  unsigned joins = 0;
  unsigned early_leavers = 0;
  unsigned removals = 0;
  unsigned suspicions = 0;
  bool stopped = false;
  unsigned report_loss_percent = 0;
};

/// The real membership logic in a simulated world: model workers, a network that delays but keeps
/// the order within a connection, faults, and an oracle that looks at everything at once.
class World {
 public:
  explicit World(const Scenario& scenario);

  /// Runs until the job is over. What went wrong, a line each; empty for a good run.
  std::string run();
  const std::string& log() const { return log_; }

 private:
  struct Connection {
    TimePoint to_server{};  ///< when the latest message arrives
    TimePoint to_worker{};
    bool open = true;
  };

  void add_worker();
  void plan_faults();
  void at_random_time(const std::function<void()>& what);
  ModelWorker* any_worker();
  void kill(ModelWorker& worker);
  void suspect(ModelWorker& worker);

  void to_server(const std::string& from, rendezvous::Message message);
  void to_worker(const std::string& to, rendezvous::Message message);
  void deliver(const std::string& from, const rendezvous::Message& message);
  void decide(const rendezvous::Event& event);
  void perform(const rendezvous::Action& action);
  void schedule_tick();

  // oracle.cpp
  void check_view(const rendezvous::View& next);
  void check_lane(const rendezvous::View& next, std::size_t lane);
  void check_agreement();
  void check_end();
  void wrong(const std::string& what);

  const Scenario scenario_;
  VirtualTime time_;
  Chance chance_;
  Fabric fabric_;
  Surroundings around_;
  rendezvous::Membership membership_;
  std::map<std::string, std::unique_ptr<ModelWorker>> workers_;
  std::vector<std::string> order_;  ///< of creation
  std::map<std::string, Connection> connections_;
  TimePoint tick_at_ = TimePoint::max();
  std::uint64_t generation_ = 0;  ///< of the latest view
  rendezvous::View view_;
  std::map<std::string, int> removed_;  ///< asked to be, by the administrator
  std::string failure_;
  std::string log_;
  std::string wrong_;
};

}  // namespace elastic::simulation
