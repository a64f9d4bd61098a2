#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "coordinator/operation.hpp"
#include "elastic/state.hpp"
#include "training/state_image.hpp"

namespace elastic::runtime {

/// The transfer of the state's image and of its large entries, from all members that have the state
/// to all that do not. Donors send them in place. Receivers collect them beside their own state,
/// which stays whole meanwhile, in `room` if that is large enough.
class StateTransfer : public coordinator::Operation {
 public:
  /// `mine` is the image of this worker's state, `bytes` the size of that of the job's state.
  StateTransfer(State& state, training::Image& mine, std::size_t bytes, collectives::Buffer& room);

  collectives::Call call(const coordinator::Members& members) override;
  void pack(const coordinator::Members& members, collectives::Payload& payload) override;
  void unpack(const coordinator::Members& members, const collectives::Payload& payload) override;

  /// Ok if this worker could take over the state. kMismatch: the data is of another state, or
  /// damaged. kRefused, kInternal: an object in the state threw.
  const Status& outcome() const { return outcome_; }
  /// Whether some member had the job's state before the transfer.
  bool had_state() const { return had_state_; }
  /// The hashes of the state's entries, after the transfer.
  std::vector<std::uint64_t> hashes() const;

 private:
  void restore(const std::vector<std::span<const std::byte>>& received);
  void add_section(std::size_t bytes);
  std::size_t end() const;

  State& state_;
  training::Image& mine_;
  collectives::Buffer& room_;
  const std::vector<std::span<std::byte>> large_;
  std::vector<collectives::Section> sections_;
  bool had_state_ = false;
  Status outcome_;
  std::vector<std::uint64_t> hashes_;  ///< of the received data
};

}  // namespace elastic::runtime
