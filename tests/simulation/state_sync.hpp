#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/operation.hpp"
#include "runtime/roster.hpp"

namespace elastic::simulation {

/// The state that a joiner receives: the number of commits, and a hash of all results.
struct JobState {
  std::uint64_t commits = 0;
  std::uint64_t hash = 0;
  bool operator==(const JobState&) const = default;
};

/// The first two of the three operations of a synchronisation, as runtime::synchronise has them:
/// an allgather of what each member brings, which tells the members to which the rules of groups
/// are applied from then on, and a transfer from all that have the state.
class HeaderOperation final : public coordinator::AllgatherOperation {
 public:
  HeaderOperation(const std::uint64_t& bytes, runtime::Roster& roster);
  void unpack(const coordinator::Members& members, const collectives::Payload& payload) override;

 private:
  runtime::Roster& roster_;
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
