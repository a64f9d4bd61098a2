#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model_server.hpp"
#include "model_worker.hpp"
#include "oracle.hpp"
#include "sim_context.hpp"
#include "threads.hpp"

namespace elastic::simulation {

/// One run: a job in a simulated world, and what happens to it. The membership's logic, the
/// worker's part in it, and the account of operations are the real ones; see docs/simulation.md.
class World {
 public:
  explicit World(const Scenario& scenario, bool traced = false);

  /// Runs until the job is over. Returns the errors, one a line; empty for a good run.
  std::string run();
  const std::string& trace() const { return trace_.text(); }
  const Tally& tally() const { return tally_; }

 private:
  void start_workers();
  void add_worker();
  void plan_faults();
  void at_random_time(Fault fault);
  void happen(Fault fault);
  void rejoin(Node worker);
  std::uint64_t most_events() const;
  bool is_over() const;
  void dismantle();

  // faults.cpp
  void kill();
  void pause();
  void join();
  void leave();
  void remove();
  void stop();
  void suspect();
  void cut_link();
  void partition();
  void crash_server(Fault how);
  void two_at_once();
  void damage();
  void reset();
  void lose_rack();
  void cut_racks();
  void part_for_good();
  Nodes some_rack();

  ModelWorker& any_worker() { return *workers_[chance_.below(workers_.size())]; }
  bool job_is_over() const;
  void note(const std::string& what);

  const Scenario scenario_;
  VirtualTime time_;
  Chance chance_;
  Tally tally_;
  Trace trace_;
  Network network_;
  Threads threads_;
  std::vector<std::unique_ptr<ModelWorker>> workers_;
  Oracle oracle_;
  SimContext context_;
  ModelServer server_;
  unsigned to_come_ = 0;  // faults, and workers that join again
};

}  // namespace elastic::simulation
