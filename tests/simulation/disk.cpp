#include "disk.hpp"

#include <utility>

namespace elastic::simulation {

using rendezvous::JournalContents;
using rendezvous::JournalRecord;

void Disk::append(JournalRecord record) {
  records_.push_back(std::move(record));
}

void Disk::append_and_crash(const JournalRecord& record, Remains remains, Chance& chance) {
  if (remains == Remains::kAll) return append(record);
  if (remains == Remains::kNothing) return;
  const std::string line = rendezvous::journal_line(record);
  tail_ = line.substr(0, 1 + chance.below(line.size() - 1));
}

void Disk::lose() {
  records_.clear();
  tail_.clear();
}

JournalContents Disk::open() {
  std::string text;
  for (const JournalRecord& record : records_) text += rendezvous::journal_line(record);
  text += tail_;
  tail_.clear();
  const JournalContents contents = rendezvous::parse_journal(text, kJob).value().contents;
  if (records_.empty()) append(rendezvous::JournalStart{kJob});
  return contents;
}

}  // namespace elastic::simulation
