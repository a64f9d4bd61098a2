#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/operation.hpp"

namespace elastic::simulation {

/// The state that a joiner receives: the number of commits, and a hash of all results.
struct JobState {
  std::uint64_t commits = 0;
  std::uint64_t hash = 0;
  bool operator==(const JobState&) const = default;
};

/// The first two of the three operations of a synchronisation, as runtime::synchronise has them:
/// a broadcast that no member has to survive, and a transfer from all that have the state.
class HeaderOperation final : public coordinator::Operation {
 public:
  explicit HeaderOperation(std::uint64_t& bytes) : bytes_(bytes) {}
  collectives::Call call(const coordinator::Members& members) override;
  void pack(const coordinator::Members& members, collectives::Payload& payload) override;
  void unpack(const coordinator::Members& members, const collectives::Payload& payload) override;

 private:
  std::uint64_t& bytes_;
};

class TransferOperation final : public coordinator::Operation {
 public:
  TransferOperation(JobState& state, std::size_t bytes);
  collectives::Call call(const coordinator::Members& members) override;
  void pack(const coordinator::Members& members, collectives::Payload& payload) override;
  void unpack(const coordinator::Members& members, const collectives::Payload& payload) override;

 private:
  JobState& state_;
  std::vector<std::byte> image_;  // sent in place
};

}  // namespace elastic::simulation
