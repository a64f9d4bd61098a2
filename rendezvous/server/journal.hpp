#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// Where views become durable before they are announced. Used by the server's thread.
class JournalSink {
 public:
  virtual ~JournalSink() = default;
  /// Returns when the view would survive a crash.
  virtual Status append(const View& view) = 0;
};

/// For jobs that need not survive their server: keeps nothing.
class NoJournal final : public JournalSink {
 public:
  Status append(const View& /*view*/) override { return {}; }
};

/// A file with one line for each view: {"xxh64":"<16 hex digits>","record":<announce message>}. The
/// checksum is that of the record's bytes, so that a line cut short by a crash is told from a whole
/// one.
class FileJournal final : public JournalSink {
 public:
  /// Appends to what is there.
  static Result<std::unique_ptr<FileJournal>> open(const std::string& path);
  Status append(const View& view) override;

 private:
  FileJournal(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  UniqueFd file_;
};

}  // namespace elastic::rendezvous
