#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace elastic::coordinator {

/// What a view asks of a lane of one worker: see rendezvous::LaneDecision.
struct LaneOrders {
  enum class Handover : std::uint8_t { kNothing, kGive, kTake };

  std::uint64_t generation = 0;
  std::uint64_t position = 0;              ///< of the lane once the hand-over is done
  Handover handover = Handover::kNothing;  ///< of the result of operation `position - 1`
  bool lost = false;  ///< operation `position` cannot be replayed and ends in the same error on all
  bool somebody_takes = false;  ///< some member, this worker or another, lacks that result
};

/// A worker's account of one lane through all views of the job: which operations are complete here,
/// and what is to be done next. It holds the invariant "all or nothing, and never twice" on this
/// side: each position is completed once, by running the operation, by taking its result from a
/// member that has it, or as lost; and nothing is begun in a view before the view's hand-over.
///
/// Pure: no threads, no data. Whoever runs the lane asks `next`, does it, and tells. Not
/// thread-safe.
class Ledger {
 public:
  enum class Step : std::uint8_t {
    kHandOver,   ///< give or take what the view says; then `handed_over`
    kSettle,     ///< the call's result is an error: meet all ranks that are in the call; then
                 ///< `settled`
    kDeliver,    ///< the call has its result already: give it to the caller; then `delivered`
    kEndAsLost,  ///< meet all members, as in a barrier; then `completed`, with the error as result
    kAttempt,    ///< run the operation; then `completed`
  };

  /// The position of the first view that this worker was announced in: from then on it counts as a
  /// member, also if that view is replaced before it was installed. Only the first call counts.
  void begin_at(std::uint64_t position);
  /// The lane goes on in another view. kInternal, with nothing changed, where the orders do not fit
  /// what is complete here: going on would repeat an operation or leave one out.
  [[nodiscard]] Status enter(const LaneOrders& orders);

  /// What is to be done; all but kHandOver for an operation of the caller.
  Step next() const;
  /// An operation that cannot be replayed without the worker `needs` ("" for none) is begun.
  void begun(std::string needs);
  /// With a result that its caller gets at once.
  void completed();
  /// With an error as the result on every rank. The caller gets it when no rank can replay the
  /// operation any more: after `settled`, or in a view in which nobody lacks it.
  void completed_in_error();
  void settled();
  /// What was to be handed over is. A taker has completed the operation by that, and has its result
  /// for whoever called it. `error`: it is one.
  void handed_over(bool error = false);
  void delivered();
  /// Nothing more can be done in the present view: a link of it failed.
  void spoiled();

  /// Operations completed in the whole job.
  std::uint64_t position() const { return position_; }
  /// Of the operation in flight.
  const std::string& needs() const { return needs_; }
  const LaneOrders& orders() const { return orders_; }
  bool is_spoiled() const { return spoiled_; }
  /// A call is between its first attempt and its result.
  bool is_open() const { return begun_ || undelivered_; }
  bool has_to_hand_over() const { return !handed_over_; }

 private:
  LaneOrders orders_;
  std::uint64_t position_ = 0;
  bool joined_ = false;       // position_ has its first value
  bool handed_over_ = true;   // in the present view
  bool begun_ = false;        // operation position_ is
  bool undelivered_ = false;  // the caller of operation position_ - 1 is yet to get its result
  bool unsettled_ = false;    // that result is an error which other members may lack
  bool spoiled_ = false;      // the present view is
  std::string needs_;
};

}  // namespace elastic::coordinator
