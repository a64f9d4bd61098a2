#include "collectives/backend/native/agreement.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/lost_root.hpp"

namespace elastic::collectives {
namespace {

using transport::Fingerprint;

/// A statement on the wire.
struct Block {
  Fingerprint called;
  char text[kMaxMismatchText];
};
static_assert(std::is_trivially_copyable_v<Block> && sizeof(Fingerprint) == 16 &&
              sizeof(Block) == 16 + kMaxMismatchText);

}  // namespace

/// The ranks leave the operation, and begin another phase at the same position. Its frames end the
/// wait of ranks that still are in the operation. In this phase an allgather exchanges all
/// statements, about 1 KiB from each rank.
Result<std::vector<Statement>> agree_on_mismatch(transport::Mesh& mesh, Executor& executor,
                                                 PlanCache& plans, transport::OpTag tag,
                                                 const Statement& mine) {
  mesh.abandon();
  tag.phase = transport::OpTag::kAbortOperation;
  // An empty fingerprint on all ranks, because those of the calls differ.
  mesh.begin(tag, Fingerprint{});
  std::vector<Block> blocks(static_cast<std::size_t>(mesh.size()));
  Block& own = blocks[static_cast<std::size_t>(mesh.rank())];
  own.called = mine.called;
  std::copy_n(mine.text.data(), std::min(mine.text.size(), kMaxMismatchText), own.text);
  const Status status = executor.run(plans.small_allgather(sizeof(Block)),
                                     reinterpret_cast<std::byte*>(blocks.data()));
  if (!status.ok()) {
    mesh.abandon();
    return status;
  }
  std::vector<Statement> statements;
  for (const Block& block : blocks) {
    statements.push_back(
        {block.called, std::string(block.text, ::strnlen(block.text, kMaxMismatchText))});
  }
  return statements;
}

namespace {

using Statements = std::vector<Statement>;

Statements::const_iterator first_unlike(const Statements& statements, const Fingerprint& called) {
  return std::find_if(statements.begin(), statements.end(),
                      [&](const Statement& each) { return each.called != called; });
}

std::string with_other_call(const Statement& knowing, const Statements& statements) {
  const auto other = first_unlike(statements, knowing.called);
  if (other == statements.end()) return knowing.text;
  const std::string rule =
      is_own_call(knowing.called, transport::OwnCall::kStateSize)
          ? "All ranks enter elastic::run together: where an exception leaves it on one rank, end "
            "that process, or have all ranks call it again"
          : "All ranks must make the same calls in the same order";
  return knowing.text + ", while rank " + std::to_string(other - statements.begin()) + " called " +
         describe(other->called) + ". " + rule;
}

/// Which may differ in the root alone, and do not both name it as a worker.
bool are_broadcasts(const Fingerprint& one, const Fingerprint& other) {
  constexpr auto kBroadcast = static_cast<unsigned>(Kind::kBroadcast);
  const bool as_workers = (one.detail & other.detail & Fingerprint::kRootWorker) != 0;
  return one.call() == kBroadcast && other.call() == kBroadcast && one.detail != other.detail &&
         !as_workers;
}

/// \returns the difference of two calls whose descriptions are the same.
const char* hidden_difference(const Fingerprint& called) {
  const auto kind = static_cast<Kind>(called.call());
  const bool has_blocks =
      kind == Kind::kAllgather || kind == Kind::kAlltoall || kind == Kind::kGather;
  if (has_blocks) return " with blocks of other shapes";
  return is_scaled(called) ? " with other factors" : " with other shapes or scales";
}

}  // namespace

std::string lost_root_message(const std::vector<Statement>& statements) {
  const auto lost = std::ranges::find_if(statements, is_lost_root_call, &Statement::called);
  if (lost == statements.end()) return {};
  return "the root of the call of rank " + std::to_string(lost - statements.begin()) +
         " is no member; choose one that is, and call again";
}

std::string mismatch_message(const std::vector<Statement>& statements) {
  const Statement* knowing = nullptr;
  for (const Statement& each : statements) {
    if (!each.text.empty() && (knowing == nullptr || each.text < knowing->text)) knowing = &each;
  }
  if (knowing != nullptr) return with_other_call(*knowing, statements);
  const auto other = first_unlike(statements, statements.front().called);
  if (other == statements.end()) return "the ranks disagree about their calls";
  const std::string first = describe(statements.front().called);
  const std::string second = describe(other->called);
  std::string message = "collectives do not match: rank 0 called " + first + ", but rank " +
                        std::to_string(other - statements.begin()) + " called " + second;
  if (first == second) message += hidden_difference(other->called);
  if (are_broadcasts(statements.front().called, other->called)) {
    message +=
        ". A root made from rank() or size() changes with the view, on one member before "
        "another: broadcast_from names a worker";
  }
  return message + ". All ranks must make the same calls in the same order";
}

}  // namespace elastic::collectives
