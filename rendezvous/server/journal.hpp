#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "rendezvous/server/journal_record.hpp"

namespace elastic::rendezvous {

/// Where views become durable before they are announced. Used by the server's thread.
class JournalSink {
 public:
  virtual ~JournalSink() = default;

  /// Ok when the view would survive a crash. kUnavailable: not yet, because the disk is full or the
  /// store has not answered; the same append is to be made again. Any other failure: this journal
  /// keeps nothing any more.
  virtual Status append(const View& view) = 0;
  /// The same for a floor: generations up to this one are never used again.
  virtual Status append_floor(std::uint64_t generation) = 0;
  /// The same for what people have asked for; replaces what was kept before.
  virtual Status append_requests(const PendingRequests& requests) = 0;
  /// The same for the job's end: a server that is started with this journal begins another
  /// training.
  virtual Status append_end(const LastWord& end) = 0;

  /// Whether there is room for more than what members' deaths need; tries to get it. kUnavailable
  /// names the file.
  virtual Status room() = 0;

  /// Whether this server may act for the job at all. False: another server may, and this one is to
  /// say nothing more.
  virtual bool leads() const { return true; }
  /// `changed` is called when an append that was not done yet may be done now; not from `append`.
  virtual void when_changed(std::function<void()> /*changed*/) {}
};

/// For jobs that need not survive their server: keeps nothing.
class NoJournal final : public JournalSink {
 public:
  Status append(const View& /*view*/) override { return {}; }
  Status append_floor(std::uint64_t /*generation*/) override { return {}; }
  Status append_requests(const PendingRequests& /*requests*/) override { return {}; }
  Status append_end(const LastWord& /*end*/) override { return {}; }
  Status room() override { return {}; }
};

struct OpenedJournal {
  std::unique_ptr<JournalSink> sink = std::make_unique<NoJournal>();
  JournalContents contents;  ///< what an earlier server of the job left
  /// This server has stood by, or led, in the training that `contents` are of.
  bool same_training = false;
};

/// Opens the journal of `job`, or begins it where there is no file or an empty one. A torn tail is
/// cut off. No other server can have the file open meanwhile; next to it lies `path`.spare, whose
/// space is kept for when the disk is full.
///
/// kUnavailable: the file cannot be read, written or locked. kInvalidArgument: it is damaged, or is
/// not this job's journal. Both name the file and say what to do.
Result<OpenedJournal> open_journal(const std::string& path, const std::string& job);

}  // namespace elastic::rendezvous
