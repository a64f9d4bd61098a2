#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/backend/native/schedule.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// How elements are combined.
struct Reducer {
  kernels::Function reduce = nullptr;
  kernels::Function reduce_last = nullptr;  ///< into memory that the plan does not use again
  std::size_t element = 1;                  ///< bytes
  DType dtype = DType::kU8;
  std::uint32_t divisor = 1;  ///< of the final sum
};

/// What the areas of a plan are in one run of it.
struct Memory {
  std::byte* data = nullptr;         ///< plan::Area::kData
  const std::byte* input = nullptr;  ///< plan::Area::kInput; may be `data`
  /// Told of what a plan is about to overwrite in `data` that may still be input.
  transport::Overwriting* overwriting = nullptr;
  /// The data is too large for the cache: what is not used again need not go there.
  bool streams = false;

  static Memory in_place(std::byte* data) { return {data, data}; }
};

/// Runs schedules on a mesh. Work per completed step is constant, and nothing is allocated once the
/// state has grown to what the calls need.
///
/// Owned by the thread that runs the lane's operation.
class Executor {
 public:
  explicit Executor(transport::Mesh& mesh);

  /// Runs `schedule` to its end. Message numbers go on from where the operation was. After a
  /// failure the mesh must be abandoned before `memory` may be touched.
  Status run(const Schedule& schedule, const Memory& memory, const Reducer& reducer = {});
  Status run(const Schedule& schedule, std::byte* data, const Reducer& reducer = {}) {
    return run(schedule, Memory::in_place(data), reducer);
  }
  /// Likewise, with memory that goes when this returns: after a failure the mesh is abandoned.
  Status run_alone(const Schedule& schedule, const Memory& memory);

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

  // Of the schedule that is being run.
  const Schedule* schedule_ = nullptr;
  Memory memory_;
  Reducer reducer_;
  std::size_t left_ = 0;
  std::vector<std::uint8_t> waits_;
  std::vector<Progress> progress_;
  std::vector<std::int32_t> local_;  // ready to be performed
};

}  // namespace elastic::collectives
