#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/negotiation.hpp"
#include "coordinator/note_routes.hpp"
#include "tests/slowness.hpp"

namespace elastic::coordinator {

/// Orders of events that each test tries.
constexpr unsigned kSeeds = 60 / kSlowness;
/// In half of them notes travel along a tree.
constexpr bool links_all(unsigned seed) {
  return seed / 2 % 2 == 0;
}

/// Workers that negotiate over links with random delays. Each has a program: requests that it
/// submits, then it blocks until all are complete. The next event is drawn from the possible
/// ones. As on a lane, no order completes anywhere before all ranks have taken it.
///
/// A request whose name begins with "even/" or "odd/" is a call of a group: only workers that began
/// with such a rank submit it.
///
/// `kJoin` in a program is a call of join: it waits for the requests before it, and those behind it
/// for its end. So does a request for an earlier one with the same name.
class NegotiationSimulator {
 public:
  using Program = std::vector<TensorRequest>;

  /// Without links between all ranks their notes travel along a tree.
  NegotiationSimulator(int ranks, std::size_t bucket_bytes, unsigned seed, bool all_linked = true);

  /// Rank 0 submits in this order, the others in a random one. Runs until all is complete.
  void step(const Program& program);
  /// The same with a program per rank, submitted as it is.
  void step_with(std::vector<Program> programs);

  /// Parts of a step.
  void begin(const Program& program);
  void begin_with(std::vector<Program> programs);
  /// Handles at most `events` events. Returns whether the step is complete.
  bool advance(std::size_t events);
  /// Every rank has waited for long.
  void let_nothing_happen_for_long();
  /// The program of a rank goes on with this request.
  void submit(std::size_t rank, const TensorRequest& request);
  /// False, with an assertion, when nothing can happen and something is not complete.
  bool finish();

  /// A new view: these ranks of the present one, in this order, and new workers behind them. Notes
  /// under way are lost. Results that any survivor has are handed to the others first.
  void change_view(const std::vector<std::size_t>& survivors, std::size_t joiners);

  /// Orders completed by `rank` since the last call with this rank: "a+b" for a bucket, "!" and the
  /// text for a mismatch, "join 2" for a join in which rank 2 was last. The same for all ranks,
  /// checked here.
  std::vector<std::string> take_history();
  /// Notes sent since the last call, by sender.
  std::vector<std::size_t> take_note_counts();
  /// Notes read since the last call, by reader.
  std::vector<std::size_t> take_read_counts();

  Negotiator& at(std::size_t rank) { return workers_.at(rank)->negotiator; }
  std::size_t size() const { return workers_.size(); }
  /// The programs call something like Work::ready() at random.
  void let_followers_flush_at_random() { random_flushes_ = true; }
  /// Ranks take it at random that nothing has happened for long.
  void let_time_pass_at_random() { random_force_flushes_ = true; }

 private:
  struct Worker {
    Worker(std::size_t bucket_bytes, std::string group_name)
        : negotiator(bucket_bytes), group(std::move(group_name)) {}
    Negotiator negotiator;
    const std::string group;  // "even/", "odd/", or of a joiner "none/"
    NoteRoutes routes;
    std::deque<TensorRequest> program;
    std::map<std::string, TensorRequest> outstanding;
    std::deque<OrderItem> taken;
    std::vector<std::string> history;
    std::size_t position = 0;  // orders completed
    std::size_t notes = 0;
    std::size_t read = 0;
    bool blocked = true;
    /// Whether its program waits before it submits the next request.
    bool waits() const;
    std::size_t entered() const { return position + taken.size(); }
  };
  struct Event {
    enum class Kind { kSubmit, kBlock, kFlush, kForceFlush, kDeliver, kComplete } kind;
    std::size_t rank;
    std::size_t from = 0;
  };

  void submit(Worker& worker, const TensorRequest& request);
  std::vector<int> group_of(const TensorRequest& request) const;
  static bool makes(const Worker& worker, const TensorRequest& request);
  std::vector<Event> possible() const;
  void happen(const Event& event);
  void complete(Worker& worker);
  void enter_view(std::size_t rank);
  void deliver(std::size_t from, std::size_t to);
  void send(std::size_t from, int to, const std::vector<std::byte>& note);
  void pump(std::size_t rank);
  bool complete() const;

  std::size_t bucket_bytes_;
  std::mt19937 random_;
  bool all_linked_;
  bool random_flushes_ = false;
  bool random_force_flushes_ = false;
  std::uint64_t generation_ = 1;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::vector<std::byte>>> links_;
};

/// A call of join.
inline const TensorRequest kJoin = join_request();

TensorRequest floats(std::string name, std::uint64_t count, ReduceOp op = ReduceOp::kSum);

/// A program with several sizes, ops and dtypes, and with groups.
NegotiationSimulator::Program varied_program(std::size_t size);

/// `program` with calls of the two groups among the others.
NegotiationSimulator::Program with_group_calls(NegotiationSimulator::Program program,
                                               std::size_t calls);

/// Buckets without regard to the order in which they ran.
std::multiset<std::string> as_set(const std::vector<std::string>& history);

}  // namespace elastic::coordinator
