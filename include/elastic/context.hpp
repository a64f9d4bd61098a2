#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elastic/allocation.hpp"
#include "elastic/collectives.hpp"
#include "elastic/compression.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/detail/process_owned.hpp"
#include "elastic/detail/ranges.hpp"
#include "elastic/diagnostics.hpp"
#include "elastic/error.hpp"
#include "elastic/learning_rate.hpp"
#include "elastic/options.hpp"
#include "elastic/results.hpp"
#include "elastic/root.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"

namespace elastic {

class Group;
class GroupRule;
class State;
class StepGroup;

/// The result of `join`, the same on all members that return from it.
struct JoinOutcome {
  int last_rank = -1;         ///< the rank, among the contributors, that called `join` last
  Contributors contributors;  ///< the workers that have joined
};

/// One worker's membership in a job. Programs with one job use the free functions of
/// <elastic/elastic.hpp> on a default context instead.
///
/// Its collectives are those of Collectives, of all members.
///
/// **Threads.** Everything may be called from any thread. Unnamed collectives of one worker are
/// done one at a time; the program decides which order they have between threads.
class ELASTIC_API Context : public Collectives {
 public:
  /// Connects to the job and waits until it has formed. A worker that joins a running job returns
  /// without being a member yet: `rank()` is -1 until `run` has it admitted.
  /// \throws Error kInvalidArgument: an option or environment variable is wrong; the message names
  ///   it.
  /// \throws Error kUnavailable: no server at the address within Options::init_timeout, or a
  ///   library, device or descriptor is missing.
  /// \throws Error kRefused: another secret, version or set of options than the job's, or the job
  ///   is over.
  /// \throws Error kBelowMinimum: fewer than min_np workers came within the server's start timeout.
  /// \throws Error kTimeout: Options::init_timeout passed first.
  explicit Context(Options options = {});
  /// Leaves the job without waiting for other workers, if `shutdown` was not called.
  ~Context() override;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Says that the job is done, and waits for the other members to say so too, so that none of them
  /// lacks a last result. Members that do not say so within half a second go on without this one,
  /// which waits only until they have been given the results that it alone has. This wait for them
  /// ends after 30 s at the latest, and after 3 s if the rendezvous server is away.
  ///
  /// After an exception that left `run` the job is not done. This worker then says that it cannot
  /// go on, and why, and does not wait; the others go on without it. The launcher's last line
  /// names it and the exception. If every member leaves in this way the job has failed.
  ///
  /// Waits for the named operations that this thread has submitted; those of other threads end with
  /// an error. The context can only be destroyed afterwards.
  /// \throws Error kInvalidArgument inside `run` and inside functions that the library calls.
  void shutdown();

  /// \returns the rank in the present view, with which it changes; -1 while joining.
  /// \throws Error kNotInitialized in a forked child and after `shutdown` of the default context.
  int rank() const;
  /// \returns the number of members of the present view; 0 while joining.
  /// \throws Error as `rank`.
  int size() const;
  /// \returns the rank among the members on this host; while joining, the one among the workers on
  ///   this host that the launcher gave this one (LOCAL_RANK and the like), or 0.
  /// \throws Error as `rank`.
  int local_rank() const;
  /// \returns the number of members on this host; 0 while joining.
  /// \throws Error as `rank`.
  int local_size() const;
  /// \returns the number of the present view; 0 while joining.
  /// \throws Error as `rank`.
  std::uint64_t generation() const;
  /// \returns this worker, as it appears in Contributors.
  /// \throws Error as `rank`.
  WorkerId id() const;
  /// \returns the members of the present view, all of one moment, in rank order; none while joining.
  /// \throws Error as `rank`.
  Contributors members() const;
  /// \returns the options in force: those of the constructor, overridden by the environment.
  /// \throws Error as `rank`.
  const Options& options() const;
  /// \returns the latest change of the view that this worker went through as a member.
  /// \throws Error as `rank`.
  ViewChange last_view_change() const;
  /// \returns where the time went in the steps that this worker has made in `run`.
  /// \throws Error as `rank`.
  StepTimes step_times() const;
  /// \returns the algorithms of the present view; generation 0 before its first operation.
  /// \throws Error as `rank`.
  Tuning tuning() const;
  /// Writes a timeline of this worker from now on: its collectives, the named tensors, its steps,
  /// and the changes of the view, in Chrome's trace event format, which Perfetto shows.
  /// docs/timeline.md explains the rows. `path` gets this worker's id, so that workers can share
  /// it: "trace.json" becomes trace.WORKER.json, and replaces a file of that name. Events reach
  /// the file within some hundredths of a second. They also do if the process is killed afterwards.
  /// \throws Error kInvalidArgument: a timeline is being written already, or the file cannot be
  ///   made; the message names it.
  /// \throws Error kNotInitialized as `rank`.
  void start_timeline(const std::string& path);
  /// Completes the timeline's file. Nothing without one. The end of the context does the same.
  /// \throws Error kNotInitialized as `rank`.
  void stop_timeline();
  /// \returns the file that the timeline is written to; empty without one.
  /// \throws Error kNotInitialized as `rank`.
  std::string timeline_file() const;

  /// \returns Options::resize_policy in force, for LearningRate::Options::policy.
  /// \throws Error as `rank`.
  ResizePolicy resize_policy() const;
  /// \returns Options::compression in force, for a GradientCompressor.
  /// \throws Error as `rank`.
  Compression compression() const;

  /// Allocates memory for tensors that the other members on this host can read in place. An
  /// allreduce of large tensors (128 KiB and more; for two workers 64 KiB) saves the copies through
  /// shared memory if all members are on one host and have all inputs and outputs in such memory.
  /// For everything else it is memory like any other. It may outlive the context. A child made by
  /// fork(2) sees the parent's, and must not write to it.
  /// \returns memory filled with zeros; empty for 0 bytes.
  /// \throws Error kUnavailable: the machine has not so much memory. If only the container has
  ///   less, the kernel ends the process on use.
  /// \throws Error kNotInitialized as `rank`.
  Allocation allocate(std::size_t bytes);

  /// The group of some members that `rule` chooses, with collectives of its own: see Group. The
  /// same rule gives the same group.
  /// \returns the group, which lives as long as this context.
  /// \throws Error as `rank`.
  Group& group(const GroupRule& rule);

  /// Says that this worker has no more data, and waits until all members have said so. Until then
  /// the named allreduces and named barriers of the others go on without it: the neutral element of
  /// the reduction stands for its tensors, so that a sum lacks them, while an average divides by
  /// all members. Any other named call of the others meanwhile ends in kMismatch on them. Calls
  /// without a name do not know of `join`: they wait for this worker. docs/join.md explains the
  /// use.
  ///
  /// Waits first for all calls of this worker with a name, and for those of this thread without
  /// one. Named calls of other threads meanwhile throw kInvalidArgument. A worker that is admitted
  /// to the job has not joined in this sense. If a member that has not joined dies, the others are
  /// all.
  /// \returns which member was the last to call it. The worker is contributors.workers()[last_rank].
  /// \throws Error kInvalidArgument: another thread is in `join`, or a function that the library
  ///   calls has called it.
  /// \throws Error kNotInitialized as `rank`, and while joining the job.
  JoinOutcome join();

  /// Trains: makes `state` the same on all members, then calls `body`, which calls `state.commit()`
  /// after each step. Workers that join call `run` too: they are admitted at a commit of the
  /// others, receive the state, and enter the body in the middle of the training; so the body's
  /// loop goes by counters that are part of the state. All members enter `run` together. The body
  /// may call everything but `shutdown` and `run`, which throw kInvalidArgument there.
  ///
  /// Exceptions of `body` come out of `run`, except kRemoved and kStopped, which end it, and, with
  /// Options::rejoin, kEvicted and a kTimeout with which this worker left the job: then it joins
  /// again and calls the body again.
  /// \returns how the training ended.
  /// \throws Error kInvalidArgument: this worker has called `run` before with a State of other
  ///   entries, or calls it inside of a function that the library calls.
  /// \throws Error kRefused: the state has other names or sizes than the job's. If members of the
  ///   first view differ, every worker gets it and the job fails.
  /// \throws Error kMismatch: an object stays different from the others' whatever it loads, and the
  ///   job fails; or a member called `run` again after an exception while the others were inside.
  /// \throws Error kEvicted: also if this worker left the job five times in a row, for kEvicted or
  ///   kTimeout as above, without a finished step. Other codes of collectives end the training,
  ///   too.
  RunOutcome run(State& state, const std::function<void()>& body);

 private:
  friend class Group;
  friend class StepGroup;
  friend struct DefaultContext;
  /// Leaves the job if `shutdown` has not, ends other threads' calls with errors, and frees what
  /// the context has once none is in a call. The object stays: each later call throws
  /// kNotInitialized.
  void end();
  runtime::ScopeUse scope() override;

  class Impl;
  struct Groups;
  detail::ProcessOwned<Impl> impl_;
  std::shared_ptr<Groups> groups_;  // not those of a forked child, where *impl_ stays and has them
};

}  // namespace elastic
