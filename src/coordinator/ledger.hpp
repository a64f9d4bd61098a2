#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace elastic::coordinator {

/// The part of a worker in the hand-over of a committed result.
enum class HandoverRole : std::uint8_t { kNone, kSender, kTaker };

/// The decision of a view on one lane, for this worker; see rendezvous::LaneDecision.
struct LaneOrders {
  std::uint64_t generation = 0;
  std::uint64_t position = 0;  ///< of the lane after the hand-over
  HandoverRole role =
      HandoverRole::kNone;  ///< in the hand-over of the result of operation `position - 1`
  bool lost = false;  ///< operation `position` cannot be replayed and ends in the same error on all
  bool has_takers = false;  ///< some member, this one or another, lacks that result
};

/// The account of one lane on one worker, through all views of the job: the operations that are
/// complete here, and the next step. It enforces the invariant "all or nothing, and never twice" on
/// this worker. Each position is completed exactly once: by running the operation, by taking its
/// result from a member that has it, or as lost. No operation begins in a view before the view's
/// hand-over is done.
///
/// Pure: no threads, no data, no I/O. The Lane asks for the `next` step, does it, and tells the
/// outcome. Not thread-safe: the Lane's mutex protects it.
class Ledger {
 public:
  enum class Step : std::uint8_t {
    kHandOver,   ///< send or take the result, as the view says; then `handed_over`
    kSettle,     ///< the call's result is an error: wait until all ranks in the call have it; then
                 ///< `settled`
    kDeliver,    ///< the call has its result: give it to the caller; then `delivered`
    kEndAsLost,  ///< a barrier of all members; then `completed_in_error`
    kAttempt,    ///< run the operation; then `completed`
  };

  /// Sets the start position: that of the first view in which this worker was announced. From then
  /// on it counts as a member, even if that view is replaced before it is installed. Only the first
  /// call has an effect.
  void begin_at(std::uint64_t position);
  /// Enters another view. Fails with kInternal, and changes nothing, if `orders` do not fit the
  /// operations that are complete here: to continue would repeat or skip an operation.
  [[nodiscard]] Status enter(const LaneOrders& orders);

  /// The next step. All steps but kHandOver need the caller's operation.
  Step next() const;
  /// An attempt at operation `position()` begins. It cannot be replayed without the worker `needs`
  /// (an incarnation; empty for none).
  void begun(std::string needs);
  /// The operation is complete, and its caller gets the result at once.
  void completed();
  /// The operation is complete with an error as its result on every rank. The caller gets the error
  /// when no rank can replay the operation any more: after `settled`, or in a view without takers.
  void completed_in_error();
  void settled();
  /// The hand-over is done. It completes the operation on a taker, which now has the result for its
  /// call. `error`: the result is an error.
  void handed_over(bool error = false);
  void delivered();
  /// A link of the present view has failed: the lane waits for the next view.
  void spoiled();

  /// The number of operations completed in the whole job.
  std::uint64_t position() const { return position_; }
  /// As given to `begun`, for the operation in flight.
  const std::string& needs() const { return needs_; }
  const LaneOrders& orders() const { return orders_; }
  bool is_spoiled() const { return spoiled_; }
  /// Whether a call is between its first attempt and its result.
  bool is_open() const { return begun_ || undelivered_; }
  bool has_to_hand_over() const { return !handed_over_; }

 private:
  LaneOrders orders_;
  std::uint64_t position_ = 0;
  bool joined_ = false;       // position_ has its first value
  bool handed_over_ = true;   // in the present view
  bool begun_ = false;        // operation position_ has begun
  bool undelivered_ = false;  // the caller of operation position_ - 1 still waits for its result
  bool unsettled_ = false;    // that result is an error which other members may lack
  bool spoiled_ = false;      // the present view has a failed link
  std::string needs_;
};

}  // namespace elastic::coordinator
