#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/ledger.hpp"
#include "process.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::simulation {

/// How an operation ended: whose contributions are in its result, or as lost, and in which
/// generation.
struct Outcome {
  std::uint64_t generation = 0;
  Nodes contributors = 0;
  bool lost = false;
  bool operator==(const Outcome&) const = default;
};

/// What a worker sends to another in a lane: its contribution to an operation, or the result of
/// one.
struct Frame {
  Node from = 0;
  std::uint64_t generation = 0;
  std::uint64_t position = 0;
  bool lost = false;                ///< it meets the others for an operation that is lost
  bool settled = false;             ///< not a contribution: it has the operation's result
  std::optional<Outcome> result{};  ///< handed over
};

/// Stands for coordinator::Lane with a backend: the real Ledger, and around it the sending and
/// counting of frames in place of data. An operation is complete when the contributions of all
/// members of the view are there, as a backend's contract says. Of one operation in three the
/// result lies in the caller's memory alone, and is let go when all members have theirs.
class ModelLane {
 public:
  struct Callbacks {
    std::function<void(std::uint64_t position, std::string needs)> on_quiet;
    std::function<void(std::uint64_t generation, Node peer)> on_suspect;
    std::function<void()> on_done;  ///< the call returns
  };

  ModelLane(Process& process, std::size_t index, Callbacks callbacks);

  /// The program calls an operation. One at a time.
  void call();
  void freeze();
  void begin_at(std::uint64_t position) { ledger_.begin_at(position); }
  void install(const rendezvous::View& view);
  void receive(const Frame& frame);
  void link_lost(Node peer);

  std::uint64_t position() const { return ledger_.position(); }
  const std::string& needs() const { return ledger_.needs(); }
  /// Of an operation that is complete here; null for another.
  const Outcome* outcome(std::uint64_t position) const;
  /// Where it stands, for people.
  std::string describe() const;

 private:
  enum class Busy : std::uint8_t { kNo, kHandingOver, kAttempting, kSettling };

  void go_on();
  void begin_attempt(bool lost);
  void count_contributions();
  void send_to_members(const Frame& frame);
  void begin_to_settle();
  void count_settled();
  void return_from_call();
  void stop();
  void begin_hand_over();
  void look_for_result();
  void complete(const Outcome& outcome);
  void release();
  void fail(Node peer);
  std::string root() const;

  Process& process_;
  const std::size_t index_;
  const Callbacks callbacks_;
  coordinator::Ledger ledger_;
  rendezvous::View view_;
  Nodes members_ = 0;
  bool frozen_ = true;
  bool called_ = false;
  Busy busy_ = Busy::kNo;
  std::uint64_t turn_ = 0;          // counts the times that the lane was taken
  Nodes concerned_ = 0;             // whose links what is going on needs
  Node giver_ = 0;                  // in the present hand-over
  std::uint64_t attempted_in_ = 0;  // generation of the latest attempt
  std::vector<Frame> inbox_;
  std::uint64_t first_ = 0;  // position of outcomes_.front()
  std::vector<Outcome> outcomes_;
  std::uint64_t let_go_ = ~std::uint64_t{0};  // the position whose result was given to the caller
};

}  // namespace elastic::simulation
