#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.hpp"
#include "rendezvous/membership/pending_requests.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// A journal is a text file with one record a line, each with the checksum of the record's bytes:
///
///   {"xxh64":"<16 hex digits>","record":<record>}
///
/// The first record names the job; views, floors, requests and the job's end follow. Behind an end,
/// views are those of another training. A record is begun only when the one
/// before it is durable, so a crash can damage none but the last. Zero bytes may follow the last
/// line: space that was taken ahead. Everything here is text to text; `journal.hpp` has the file.

/// First record of every journal.
struct JournalStart {
  std::string job;
};
/// Generations up to and including this one may have been used and are never given again.
struct JournalFloor {
  std::uint64_t generation = 0;
};
using JournalRecord = std::variant<JournalStart, JournalFloor, View, PendingRequests, LastWord>;

/// One record as a line, with its checksum and line end.
std::string journal_line(const JournalRecord& record);

/// The contents of a journal at its end.
struct JournalContents {
  std::optional<View> view;  ///< the last one
  std::uint64_t floor = 0;   ///< the greatest generation named anywhere, by views and floors
  bool begun = false;        ///< a server has had this journal before
  bool torn = false;         ///< the last line was cut short or damaged, and does not count
  std::optional<LastWord> end = {};  ///< the job that had this view is over
  PendingRequests requests = {};     ///< the latest; none where the job is over

  bool empty() const { return !view && floor == 0; }

  /// The floor of a server that begins with these contents: the generation after the last may have
  /// been decided and lost with the earlier server.
  std::uint64_t next_floor() const { return begun ? floor + 1 : 0; }

  /// The contents after one more record.
  JournalContents with(const View& next) const;
  JournalContents with_floor(std::uint64_t generation) const;
  JournalContents with_requests(const PendingRequests& next) const;
  JournalContents with_end(const LastWord& word) const;
};

/// The shortest journal with these contents.
std::string journal_text(const std::string& job, const JournalContents& contents);

struct ParsedJournal {
  JournalContents contents;
  std::size_t whole_bytes = 0;  ///< of the lines that count; the next record belongs behind them
};

/// Reads a whole journal; no text is an empty one. kInvalidArgument names the line: this
/// is no journal, another job's or another version's, or lines before the last are damaged.
Result<ParsedJournal> parse_journal(std::string_view text, const std::string& job);

}  // namespace elastic::rendezvous
