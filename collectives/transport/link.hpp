#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/byte_count.hpp"
#include "collectives/transport/frame.hpp"
#include "collectives/transport/link_messages.hpp"
#include "collectives/transport/shared_memory_features.hpp"
#include "collectives/transport/sink.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

class FlowThreads;

/// Every `of`-th flow of a link, from number `index` on: what one of several threads moves.
struct FlowShare {
  std::size_t index = 0;
  std::size_t of = 1;
};

/// Messages between two workers in one lane, over one or several flows: a flow is a stream with the
/// frames on it.
///
/// Within an operation the i-th message that one end sends is the i-th that the other receives;
/// both know its size from their plans, so a header carries only its index. Over several flows a
/// message travels in stripes, which each flow pulls when it is free; they may arrive in any order
/// and are applied as they come.
///
/// Owned by one thread at a time (the one that runs the lane's operation). Nothing blocks. While it
/// is `share`d, each of several threads moves some of the flows.
class Link {
 public:
  /// `streams`, one for each flow, is not empty; all lead to the same peer. `peer_name` is for
  /// error messages.
  Link(std::vector<StreamPtr> streams, std::string peer_name);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// The rank that the peer has in the present view; part of the failures reported.
  void set_peer(int rank) { peer_ = rank; }
  int peer() const { return peer_; }

  /// Starts operation `tag`: message numbers restart at 0. Nothing of an earlier operation may be
  /// posted any more (all of it done, or `abandon`ed).
  void begin(const OpTag& tag, const Fingerprint& fingerprint);

  /// Queues a message. `payload` must stay valid and unchanged until `sent()` counts it, or until
  /// `abandon`. May be empty.
  void send(std::span<const std::byte> payload);

  /// Says where the next message goes. `sink.into` must stay valid until `received()` counts it, or
  /// until `abandon`.
  void receive(const Sink& sink);

  /// Moves whatever can be moved now. Sets `moved` to true if anything was, or if a further message
  /// counts as sent or received: a thread that finds nothing moved may sleep.
  /// Fails with kPeerLost; kMismatch when the peer's fingerprint for this operation differs (the
  /// message names both calls); kOperationAborted when the peer has aborted this operation;
  /// kProtocol for bytes that are no frame; kInternal where they could not be encrypted. After
  /// kPeerLost, kProtocol or kInternal the link is `broken()`.
  Status progress(bool& moved);

  /// Messages of this operation whose last byte was handed to the streams / arrived and applied
  /// (counting only those before which nothing is missing).
  std::size_t sent() const { return messages_.sent(); }
  std::size_t received() const { return messages_.received(); }
  /// Everything posted was sent or received.
  bool complete() const { return messages_.complete(); }

  /// From now on `threads` move the flows: the owner the first share, by `progress`, and the others
  /// theirs, by `progress_share`. They are told of all messages that are posted, and tell the owner
  /// of all that are complete. While the link is shared `progress` does not break it: after a
  /// failure the owner has to end the sharing, and finds the failure again. Null: ends it. No other
  /// thread may be at work on the link when this is called.
  void share(FlowThreads* threads);
  /// `progress` of the flows in `share`. `looks_at_all`: also of those not in use.
  Status progress_share(const FlowShare& share, bool looks_at_all, bool& moved);
  /// `prepare_wait` and `finish_wait` for the flows in `share`; `also_unused`: watches those that
  /// are not in use, too.
  bool prepare_share_wait(const FlowShare& share, bool also_unused, std::vector<pollfd>& watched);
  void finish_share_wait(const FlowShare& share);

  /// The eager channel to the peer; null if there is none.
  EagerChannel* eager_channel() const {
    return shared_memory_ ? &shared_memory_->eager_channel() : nullptr;
  }
  /// The number of flows.
  std::size_t flows() const { return flows_.size(); }
  /// Outgoing data uses the first `most` flows from now on; frames under way are completed. All are
  /// read, though the others less often: the peer chooses for itself, and is expected to choose the
  /// same. At first all are used.
  void use_flows(std::size_t most);
  /// The number of flows that outgoing data uses: tests see here what each end applies.
  std::size_t flows_in_use() const { return in_use_; }
  /// The peer's arena, null where there is none or it cannot be read.
  ArenaView* arena() const { return shared_memory_ ? shared_memory_->arena() : nullptr; }
  /// Bytes that are taken even if the peer reads nothing; 0 if that is unknown.
  std::size_t capacity() const { return shared_memory_ ? shared_memory_->capacity() : 0; }

  /// Forgets everything posted. A frame that is partly written is completed later from a copy made
  /// here, one partly read is read to its end and dropped, so that the link survives.
  void abandon();

  /// Queues a note of at most kMaxNoteBytes; `progress` sends it. Notes stay in order among
  /// themselves, whatever messages do.
  void send_note(std::uint64_t generation, std::vector<std::byte> payload);
  /// The next note of `generation` that arrived; older ones are dropped, later ones kept.
  std::optional<std::vector<std::byte>> take_note(std::uint64_t generation);

  /// Lets every stream prepare to sleep; appends what poll(2) has to watch. Returns false when
  /// there is something to do at once. Streams whose next frame is for a later operation are
  /// watched for the peer's death only. `finish_wait` must follow either way, with what poll(2)
  /// said, if it was asked.
  bool prepare_wait(std::vector<pollfd>& watched);
  void finish_wait(std::span<const pollfd> watched = {});
  /// Adds flows that carry no data, which `prepare_wait` leaves out, to `watched`: for a long
  /// sleep.
  void watch_idle(std::span<pollfd> watched) const;

  /// `Stream::look` on every stream: kPeerLost breaks the link.
  Result<bool> look(TimePoint now);

  /// Counts bytes beside those of the streams: eager messages, and memory of the peer that was read
  /// in place.
  void count(std::size_t bytes) { bytes_->add(bytes); }
  /// All bytes that this end has sent, with their frames, or read in place.
  std::shared_ptr<const ByteCount> bytes() const { return bytes_; }

  bool broken() const { return broken_; }
  /// Whether the peer has closed a stream, found out without touching any: for a thread that does
  /// not own the link.
  bool hung_up() const;
  /// Ends the link for both sides, without touching what is under way: for a thread that does not
  /// own it. Its owner learns of it as of a peer that closed.
  void hang_up();
  const char* transport() const;  ///< of its streams
  const std::string& peer_name() const { return peer_name_; }

  /// Flows that are not in use are looked at in one round of so many: nothing is expected there,
  /// and every look is a system call.
  static constexpr unsigned kRoundsPerLook = 256;
  static constexpr std::size_t kStripeBytes = LinkMessages::kStripeBytes;
  static constexpr std::size_t kMaxNoteBytes = 1 << 20;
  /// Notes that wait to be taken. More of them: the peer does not keep to the protocol.
  static constexpr std::size_t kMaxNotes = 65536;
  static constexpr std::size_t kMaxUntakenBytes = 64 << 20;

 private:
  /// One stream and the frames that are partly on it, one each way.
  struct Flow;

  Flow& first_flow() { return *flows_.front(); }
  Status write_flow(Flow& flow, bool& moved);
  bool load_next_frame(Flow& flow);
  bool load_note(Flow& flow);
  bool load_stripe(Flow& flow);
  void frame_written(Flow& flow);
  void count_bytes(std::size_t bytes);
  Status read_flow(Flow& flow, bool& moved);
  Status read_header(Flow& flow, bool& moved);
  Status admit(Flow& flow);
  Status admit_data(Flow& flow);
  Status admit_note(Flow& flow);
  bool is_deferred(const Flow& flow) const;
  Status read_payload(Flow& flow, bool& moved);
  Status apply(Flow& flow, std::size_t& taken);
  static void account(Flow& flow, std::span<const std::byte> bytes);
  Status verify(const Flow& flow) const;
  void finish_payload(Flow& flow);
  bool pending(const Flow& flow) const;
  FlowShare own_share() const;
  Status fail(const Status& status);

  int peer_ = -1;
  std::string peer_name_;
  const std::shared_ptr<ByteCount> bytes_ = std::make_shared<ByteCount>();
  LinkMessages messages_;
  std::vector<std::unique_ptr<Flow>> flows_;
  FlowThreads* threads_ = nullptr;       // that move flows, too; null: the link is not shared
  SharedMemoryFeatures* shared_memory_;  // of the first stream; null: it has none
  std::size_t in_use_;                   // of flows_, from the first on
  std::size_t turn_ = 0;             // the one to begin with: a free flow must not take all stripes
  unsigned rounds_ = 0;              // of `progress`; the others are not looked at in each
  bool looked_since_loss_ = false;   // at all flows, and nothing moved
  std::size_t watched_at_ = 0;       // where `prepare_wait` has put the first
  std::atomic<bool> broken_{false};  // the control thread asks, too

  struct Note {
    std::uint64_t generation = 0;
    std::vector<std::byte> payload;
  };
  std::deque<Note> notes_out_;  // not yet begun
  std::deque<Note> notes_in_;
  std::size_t note_bytes_ = 0;  // in notes_in_
};

using LinkPtr = std::shared_ptr<Link>;

}  // namespace elastic::transport
