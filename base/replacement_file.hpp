#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <sys/stat.h>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

/// A file that is written beside another, under a name of its own (`path`.<pid>-<number>.new), and
/// then takes its place and its permissions, or comes into being as `path`: a reader of `path`, at
/// any time and after any crash, reads all of the old or all of the new. Where `path` is a symbolic
/// link, that is so of what it leads to. Without `commit` it leaves nothing behind, but for where
/// the process is killed; then the next one to write the same path removes what is left.
///
/// Failures name the file and say what to do; kInvalidArgument where `path` names no file,
/// otherwise kUnavailable.
class ReplacementFile {
 public:
  static Result<ReplacementFile> create(const std::string& path);
  ReplacementFile(ReplacementFile&&) = default;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile();

  Status write(std::span<const std::byte> bytes);
  /// Makes what was written durable and puts it in its place. After a failure of this nothing was
  /// replaced, except where the message says so. Fails where another process has replaced the file
  /// since `create`: a writer that stalled does not take back what came after it. A lock
  /// (flock) on the folder makes the look at the old file and its replacement one step, on disks
  /// that have locks; the kernel takes it back from a process that dies. Fails where another
  /// process holds it for seconds.
  Status commit();

 private:
  ReplacementFile(std::string path, UniqueFd folder, std::string name);
  Status open();
  Status keep_permissions();
  void remove_left_over(const std::string& folder) const;
  /// The status of the file to replace; nothing if there is none.
  std::optional<struct stat> present() const;
  Status lock_folder() const;
  Status place();

  std::string path_;
  UniqueFd folder_;
  std::string name_;                // in the folder
  std::string fresh_;               // in the folder: the file that is written
  std::optional<struct stat> old_;  // as of `create`
  UniqueFd file_;                   // locked; closed: there is nothing to take back
};

}  // namespace elastic
