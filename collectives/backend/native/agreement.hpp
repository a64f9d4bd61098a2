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

/// What a rank has to say about a mismatch.
struct Statement {
  transport::Fingerprint called;
  std::string text;  ///< replaces the description of its call where a rank knows better
};

/// Abandons the operation `tag`, which some rank found to be a mismatch, and agrees with all others
/// on the message to report. Ends nowhere before every rank has entered it. Everybody tells
/// everybody, so that no rank that is still waiting in the operation can miss it.
Result<std::string> agree_on_mismatch(transport::Mesh& mesh, Executor& executor, PlanCache& plans,
                                      transport::OpTag tag, const Statement& mine);

/// A function of all ranks' statements alone: the least text, with the first call that differs from
/// the one of its rank, or else the first two ranks whose calls differ.
std::string mismatch_message(const std::vector<Statement>& statements);

/// Longer texts are cut.
inline constexpr std::size_t kMaxMismatchText = 1000;

}  // namespace elastic::collectives
