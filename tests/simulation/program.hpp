#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/work_state.hpp"
#include "nodes.hpp"
#include "process.hpp"

namespace elastic::simulation {

class Contribution;
class ModelWorker;
class NamedCall;
class ProgramGroups;
class StepTensors;
class TransferOperation;

/// The trainer of a worker, as it would be written with the public API: steps of named and unnamed
/// calls with computing between them, a boundary after each, and the synchronisation with workers
/// that join there. All workers of a run make the same calls in the same step.
///
/// Its own thread calls run(); all other functions are for other threads.
class Program {
 public:
  Program(ModelWorker& worker, Process& process);
  ~Program();

  /// The body of the trainer's thread. Returns when the worker has left the job.
  void run();
  void leave_early() { leave_early_ = true; }
  /// Waits for the program's background thread, which ends when the lanes are closed.
  void join_background();
  /// Whether it had an exception, and calls nothing any more.
  bool idle() const { return idle_; }

  bool synced() const { return synced_; }
  /// Before the last step, by its own choice or after an error.
  bool leaves_early() const { return leave_early_ || leaves_with_error_ || idle_; }
  bool said_bye() const { return said_bye_; }
  void says_bye() { said_bye_ = true; }
  std::string describe() const;

 private:
  Status train();
  Status step(std::uint64_t number);
  Status leave_run_and_enter_again(std::uint64_t step);
  std::unique_ptr<NamedCall> make_named(const std::string& name, std::uint64_t step,
                                        std::uint64_t call) const;
  Status submit_named(const std::string& name, std::uint64_t step, std::uint64_t call);
  Status wait_for_named(std::uint64_t step);
  Status end_named(const NamedCall& call, std::uint64_t step, const Result<Contributors>& result);
  Nodes check_named(const NamedCall& call, const Contributors& contributors) const;
  void check_in_background(const NamedCall& call, const Contributors& contributors) const;
  Status end_dropped();
  Status step_as_unit(std::uint64_t number);
  Status end_unit(std::uint64_t step);
  Status end_failed_unit(std::uint64_t step, const Status& failure);
  Status unnamed_call(std::uint64_t step, std::uint64_t call);
  Status unnamed_and_group_calls(std::uint64_t step, std::uint64_t call);
  Status allreduce(std::uint64_t step, std::uint64_t call, std::size_t elements, bool zero_copy);
  Status broadcast(std::uint64_t step, std::uint64_t call, coordinator::Root root);
  Status barrier();
  Status allgather(std::uint64_t step, std::uint64_t call);
  Status reduce_scatter(std::uint64_t step, std::uint64_t call);
  Status alltoall(std::uint64_t step, std::uint64_t call);
  Status gather(std::uint64_t step, std::uint64_t call);
  Status scan(std::uint64_t step, std::uint64_t call);
  Status run_operation(coordinator::Operation& operation, const std::string& what,
                       Result<Contributors>& outcome);
  Status uneven_batches(std::uint64_t step);
  Status sum_batch(std::uint64_t step, std::uint64_t batch);
  Status join(std::uint64_t step);
  void check_last(std::uint64_t step, const Result<Contributors>& result,
                  std::span<const WorkerId> workers, int rank);
  bool calls_again(const Status& failure);
  bool is_late(const Status& failure) const;
  bool forgets_timeouts() const;
  void call_in_background();
  Status boundary();
  Status synchronise();
  Status synchronise_once(bool& agreed);
  void compute(Milliseconds most);
  bool counts() const { return !process_.over(); }
  void note_result(std::uint64_t what);
  void note_result(const Nodes& counted) { note_result(std::hash<Nodes>()(counted)); }

  ModelWorker& worker_;
  Process& process_;
  std::thread background_;
  // Calls that may not be complete, with the memory that they refer to.
  std::vector<std::unique_ptr<NamedCall>> open_;
  std::vector<std::unique_ptr<NamedCall>> dropped_;  // in this step; nothing waits for them
  std::unique_ptr<StepTensors> unit_;
  std::unique_ptr<ProgramGroups> groups_;  // null: it calls none
  std::vector<std::unique_ptr<Contribution>> given_;
  std::vector<std::unique_ptr<TransferOperation>> transfers_;
  bool leave_early_ = false;
  bool leaves_with_error_ = false;
  bool idle_ = false;
  bool synced_ = false;
  bool said_bye_ = false;
  const char* doing_ = "starting";
  std::uint64_t state_ = 0;  // a hash of all results, which all members must have in common
};

}  // namespace elastic::simulation
