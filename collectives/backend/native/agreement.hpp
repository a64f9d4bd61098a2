#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/transport/frame.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// One rank's account of a mismatch.
struct Statement {
  transport::Fingerprint called;
  std::string text;  ///< if not empty, reported instead of a description of the call
};

/// Abandons the operation `tag`, which some rank found to be a mismatch, and exchanges the accounts
/// of all ranks, from which each derives the same error. Returns on no rank before every rank has
/// entered it. Every rank sends to every other rank, so that a rank that still waits in the
/// operation learns of the mismatch.
/// \returns the statements, by rank.
Result<std::vector<Statement>> agree_on_mismatch(transport::Mesh& mesh, Executor& executor,
                                                 PlanCache& plans, transport::OpTag tag,
                                                 const Statement& mine);

/// \returns the same message on all ranks, from their statements alone: the least text with the
/// first call that differs from that rank's call; without any text, the first two unlike calls.
std::string mismatch_message(const std::vector<Statement>& statements);

/// The message where a rank's call has a root that is no member (lost_root_call); empty if none
/// has. The same on all ranks.
std::string lost_root_message(const std::vector<Statement>& statements);

/// In bytes; longer texts are cut.
inline constexpr std::size_t kMaxMismatchText = 1000;

}  // namespace elastic::collectives
