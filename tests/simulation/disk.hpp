#pragma once

#include <string>
#include <vector>

#include "chance.hpp"
#include "rendezvous/server/journal_record.hpp"

namespace elastic::simulation {

inline constexpr const char* kJob = "simulated";

/// The file of the server's journal. Lines are formatted when the file is read, so that a run
/// without a restart formats none.
class Disk {
 public:
  /// The part of a record that a crash in the middle of its append leaves.
  enum class Remains { kNothing, kTorn, kAll };

  void append(rendezvous::JournalRecord record);
  void append_and_crash(const rendezvous::JournalRecord& record, Remains remains, Chance& chance);
  void lose();

  /// Reads the journal, cuts a torn tail off, and begins it where there is none.
  rendezvous::JournalContents open();

 private:
  std::vector<rendezvous::JournalRecord> records_;
  std::string tail_;
};

}  // namespace elastic::simulation
