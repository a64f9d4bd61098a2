#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// Gathers what happens to a job for people that look at it: views by cause, recovery times, the
/// latest events, and the step rate of the last minutes. No decision depends on it.
///
/// A recovery is a view change as the training feels it: from the moment at which a member notices
/// that something is wrong to its next completed operation. It takes as long as that of the slowest
/// member, and is known when all members have told theirs.
///
/// Pure: `at_ms` is the time of day, in milliseconds since 1970. Owned by the server's thread.
class HistoryRecorder {
 public:
  HistoryRecorder();

  struct Recovery {
    std::uint64_t generation = 0;
    std::string cause;  ///< as in JobHistory::Views
    double seconds = 0;
  };

  void note_event(const std::string& event, const std::string& text, std::int64_t at_ms,
                  std::optional<double> seconds = {});
  /// A view holds from now on. \returns the recoveries that are complete without members that are
  /// gone.
  std::vector<Recovery> note_view(const View& view);
  /// A member has told its figures. \returns the recoveries that are complete with them.
  std::vector<Recovery> note_figures(const std::string& incarnation, const WorkerFigures& figures);
  /// Whether a sample of the step rate is due.
  bool wants_rate(std::int64_t at_ms) const;
  void note_rate(double steps_per_second, std::int64_t at_ms);

  const JobHistory& history() const { return history_; }

 private:
  /// A recovery that some members have not told of.
  struct Pending {
    Recovery recovery;
    std::set<std::string> awaited;
    bool told = false;  ///< by at least one member
  };
  JobHistory::Views& views_by(const std::string& cause);
  std::vector<Recovery> take_complete();

  JobHistory history_;
  bool began_ = false;            ///< there was a view
  std::vector<Pending> pending_;  ///< by generation
};

/// Why a view came about, in one word: see JobHistory::Views. A loss counts before other causes.
std::string cause_of(const View& view);

}  // namespace elastic::rendezvous
