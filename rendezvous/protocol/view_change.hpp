#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "rendezvous/protocol/view.hpp"

namespace elastic::rendezvous {

/// Ranks in rising order: the first and the last of each run of consecutive ones.
using RankRuns = std::vector<std::uint64_t>;

/// The difference of a view from the one before it. Its size is that of the change, not of the job,
/// unless holders and takers of a result alternate.
struct ViewChange {
  /// See LaneDecision. Ranks are those of the new view.
  struct Lane {
    std::uint64_t position = 0;
    RankRuns holders;
    RankRuns takers;
    bool lost = false;

    bool operator==(const Lane&) const = default;
  };

  std::uint64_t before = 0;  ///< generation of the view that it changes
  std::uint64_t generation = 0;
  RankRuns stay;              ///< ranks in the view before of the first members of the new one
  std::vector<Member> added;  ///< the others
  RankRuns synced;            ///< ranks in the new view
  RankRuns joined;            ///< as in View, by ranks in the new view
  RankRuns lost;              ///< by ranks in the view before
  RankRuns left;              ///< by ranks in the view before
  std::vector<Lane> lanes;
  std::uint64_t commits = 0;
  std::uint64_t admitted_at = 0;
  std::string cause;
  std::vector<BrokenPair> broken;
  bool below_minimum = false;

  bool operator==(const ViewChange&) const = default;
};

/// None: `after` is not a change of `before` that can be said so.
std::optional<ViewChange> change_between(const View& before, const View& after);

/// The view that `change` makes of `before`. kProtocol: it is not a change of that one.
Result<View> apply(const ViewChange& change, const View& before);

/// The same for views that are shared.
Result<SharedView> change_shared(const ViewChange& change, const SharedView& before);

/// The latest view that was announced to a worker, whole or as a change.
class AnnouncedView {
 public:
  const SharedView& view() const { return view_; }
  void take(SharedView view) { view_ = std::move(view); }
  /// kProtocol: it is no change of the latest view, which then stays.
  Status take(const ViewChange& change);

 private:
  SharedView view_ = std::make_shared<const View>();
};

}  // namespace elastic::rendezvous
