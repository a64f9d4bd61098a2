#pragma once

#include <string>
#include <vector>

#include "chance.hpp"
#include "rendezvous/server/journal_record.hpp"

namespace elastic::simulation {

inline constexpr const char* kJob = "simulated";

/// The file of the server's journal. Lines are made when somebody reads: that a run without a
/// restart costs none of them.
class Disk {
 public:
  /// What a crash in the middle of an append leaves of its record.
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
