#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elastic::plan {

/// The memory that a plan speaks of.
enum class Area : std::uint8_t {
  kData,     ///< the result is made here
  kInput,    ///< this rank's contribution, never written; may be the same memory as kData
  kScratch,  ///< as large as Plan::scratch_bytes says
};

struct Range {
  Area area = Area::kData;
  std::size_t offset = 0;  ///< bytes
  std::size_t bytes = 0;
};

/// One action of a rank. A step may start when the steps in `after` are complete.
///
/// Messages between two ranks match in order: the i-th kSend to a peer is the i-th receive of any
/// kind (kReceive, kReceiveReduce, kReduceReceived) from this rank there, with the same number of
/// bytes.
struct Step {
  enum class Kind : std::uint8_t {
    kSend,            ///< `from` to `peer`
    kReceive,         ///< from `peer` into `into`
    kReceiveReduce,   ///< from `peer`: `into` = `from` op what arrives; `from` may be `into`
    kReduceReceived,  ///< from `peer`: `into` = what arrives op `from`
    kReduce,          ///< locally: `into` = `into` op `from`
    kReduceFlipped,   ///< locally: `into` = `from` op `into` (NaN payloads depend on the order)
    kCopy,            ///< locally: `into` = `from`
    kFinish,          ///< locally: `into` holds its final sum, and becomes the mean if one is asked
  };
  static constexpr std::int32_t kNone = -1;

  Kind kind = Kind::kSend;
  std::int32_t peer = kNone;
  Range from;
  Range into;
  /// For a receive into kData: nothing was written to `into` before, so that it may hold this
  /// rank's input.
  bool first_write = false;
  /// For a receive into kData: the plan does not touch `into` any more, except to finish it.
  bool last_use = false;
  std::int32_t after[2] = {kNone, kNone};  ///< indices of earlier steps
};

/// The steps of one rank in a collective. Pure data: made by the functions beside this file, run by
/// the native backend's executor, checked for all ranks at once by the tests.
struct Plan {
  std::vector<Step> steps;
  std::size_t scratch_bytes = 0;
};

}  // namespace elastic::plan
