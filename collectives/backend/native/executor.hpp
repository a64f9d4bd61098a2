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

/// How the elements of a section are combined.
struct Reducer {
  kernels::Function reduce = nullptr;
  std::size_t element = 1;  ///< bytes
};

/// Runs schedules on a mesh. Work per completed step is constant, and nothing is allocated once the
/// state has grown to what the calls need.
///
/// Owned by the thread that runs the lane's operation.
class Executor {
 public:
  explicit Executor(transport::Mesh& mesh);

  /// Runs `schedule` to its end. Message numbers go on from where the operation was. After a
  /// failure the mesh must be abandoned before `data` may be touched.
  Status run(const Schedule& schedule, std::byte* data, const Reducer& reducer = {});

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
  std::byte* address(const plan::Range& range);

  transport::Mesh& mesh_;
  const std::function<bool()> advance_;
  Buffer scratch_;

  // Of the schedule that is being run.
  const Schedule* schedule_ = nullptr;
  std::byte* data_ = nullptr;
  Reducer reducer_;
  std::size_t left_ = 0;
  std::vector<std::uint8_t> waits_;
  std::vector<Progress> progress_;
  std::vector<std::int32_t> local_;  // ready to be performed
};

}  // namespace elastic::collectives
