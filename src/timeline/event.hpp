#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elastic::timeline {

/// How an operation ended.
enum class Outcome : std::uint8_t {
  kOpen,  ///< not yet
  kDone,
  kError,        ///< with the same error on all ranks
  kInterrupted,  ///< a change of the view ended this attempt
};

/// One entry of a timeline. Of a fixed size, so that recording one allocates nothing.
struct Event {
  enum class Type : std::uint8_t {
    kOperation,   ///< an attempt at a lane's operation
    kTensor,      ///< a named tensor, from its submission to its result
    kViewChange,  ///< see elastic::ViewChange
    kMember,      ///< this worker has a rank from now on
    kCommit,      ///< a step boundary
  };

  /// Indices of `times`. Those of an operation are ticks (base/ticks.hpp), because reading Clock
  /// costs a small call too much; all others nanoseconds of Clock. 0: there was no such moment.
  enum OperationTime : std::size_t { kBegan, kPacked, kPerformed, kEnded };
  enum TensorTime : std::size_t { kSubmitted, kOrdered, kRun, kComplete };
  enum ViewChangeTime : std::size_t {
    kNoticed,
    kReported,
    kDecided,
    kLinked,
    kInstalled,
    kResumed,
    kMoments
  };
  static constexpr std::size_t kAt = 0;  ///< of kMember and kCommit

  Type type = Type::kOperation;
  Outcome outcome = Outcome::kDone;
  std::uint8_t kind = 0;  ///< transport::Fingerprint::kind of the operation
  std::uint8_t lane = 0;
  bool eager = false;          ///< the operation was Lane::run_small
  bool on_device = false;      ///< the operation was performed in a device's memory
  std::uint32_t text = 0;      ///< in Texts: the tensor's name, the cause of a view change
  std::uint32_t tensors = 1;   ///< of the operation
  std::uint32_t members = 0;   ///< of the view
  std::uint32_t rank = 0;      ///< kMember
  std::uint64_t position = 0;  ///< of the operation in its lane; of kCommit the number of commits
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  std::array<std::int64_t, kMoments> times{};
};

}  // namespace elastic::timeline
