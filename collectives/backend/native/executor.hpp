#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/schedule.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

using plan::Schedule;

/// The arithmetic of a reduction.
struct Reducer {
  kernels::Function reduce = nullptr;
  kernels::Function reduce_last = nullptr;  ///< to memory that the plan does not use again
  std::size_t element = 1;                  ///< bytes
  DType dtype = DType::kU8;
  std::uint32_t divisor = 1;  ///< of the final sum; 1 if the call is no average
};
/// Without a divisor.
Reducer reducer_of(DType dtype, ReduceOp op);

/// The memory of a plan's areas in one run. The caller owns it.
struct PlanBuffers {
  std::byte* data = nullptr;         ///< plan::Area::kData
  const std::byte* input = nullptr;  ///< plan::Area::kInput; may be `data`
  /// Called before the plan overwrites a part of `data` that may still be input; may be null.
  transport::Overwriting* overwriting = nullptr;
  /// The data is larger than the cache: blocks that the plan does not use again bypass it.
  bool bypasses_cache = false;

  static PlanBuffers in_place(std::byte* data) { return {data, data}; }
};

/// Runs schedules on a mesh: posts each step when the steps before it are complete, and performs
/// local steps itself. Constant work per step; no allocation once the state has grown to the calls.
///
/// Owned by the thread that runs the lane's operation.
class Executor {
 public:
  explicit Executor(transport::Mesh& mesh);

  /// Runs `schedule` to its end. Its messages follow those of earlier schedules of the operation.
  /// After a failure the caller must abandon the mesh before it touches `memory`.
  Status run(const Schedule& schedule, const PlanBuffers& memory, const Reducer& reducer = {});
  Status run(const Schedule& schedule, std::byte* data, const Reducer& reducer = {}) {
    return run(schedule, PlanBuffers::in_place(data), reducer);
  }
  /// The same, for memory that the caller releases afterwards: abandons the mesh after a failure.
  Status run_alone(const Schedule& schedule, const PlanBuffers& memory,
                   const Reducer& reducer = {});

 private:
  /// Progress of one Schedule::Queue. Messages complete in order, hence counts are enough.
  struct Progress {
    transport::Link* link = nullptr;
    std::size_t sent_before = 0;  // messages of this operation that earlier schedules sent
    std::size_t received_before = 0;
    std::size_t sends_posted = 0;
    std::size_t sends_done = 0;
    std::size_t receives_posted = 0;
    std::size_t receives_done = 0;
  };

  void start();
  bool advance();
  void collect(std::size_t queue);
  void complete(std::int32_t index);
  void post_sends(std::size_t queue);
  void post_receives(std::size_t queue);
  void run_local_steps();
  void perform(const plan::Step& step);
  transport::Sink sink_of(const plan::Step& step);
  std::byte* address(const plan::Range& range);
  const std::byte* source(const plan::Range& range);

  transport::Mesh& mesh_;
  const std::function<bool()> advance_;
  Buffer scratch_;

  // State of the running schedule.
  const Schedule* schedule_ = nullptr;
  PlanBuffers memory_;
  Reducer reducer_;
  std::size_t left_ = 0;
  std::vector<std::uint8_t> waits_;
  std::vector<Progress> progress_;
  std::vector<std::int32_t> local_;  // ready to be performed
};

}  // namespace elastic::collectives
