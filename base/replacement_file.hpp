#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <sys/stat.h>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

/// Replaces a file atomically. The new file is written beside `path`, under a name of its own
/// (`path`.<pid>-<number>.new), and then takes the place and the permissions of the old one, if
/// there is one. A reader of `path`, at any time and after any crash, reads all of the old file or
/// all of the new one. If `path` is a symbolic link, its target is replaced. Without `commit` no
/// file is left behind. If the process is killed, the next writer of the same path removes the file
/// that was left.
///
/// Failures name the file and say what to do: kInvalidArgument if `path` names no file, otherwise
/// kUnavailable.
class ReplacementFile {
 public:
  static Result<ReplacementFile> create(const std::string& path);
  ReplacementFile(ReplacementFile&&) = default;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile();

  Status write(std::span<const std::byte> bytes);
  /// Makes the new file durable and replaces the old one. After a failure nothing was replaced,
  /// unless the message says otherwise. If another process has replaced the file since `create`, it
  /// fails unless `goes_before` says that this file goes before that one: a writer that stalled
  /// does not undo a later write. On disks with locks, a lock (flock) on the folder makes this
  /// check and the replacement one step; the kernel releases the lock of a process that dies. Fails
  /// if another process holds the lock for seconds.
  Status commit(const std::function<bool()>& goes_before = {});

 private:
  ReplacementFile(std::string path, UniqueFd folder, std::string name);
  Status open();
  Status keep_permissions();
  void remove_left_over(const std::string& folder) const;
  /// The status of the file to replace; nothing if there is none.
  std::optional<struct stat> present() const;
  Status lock_folder() const;
  Status place(const std::function<bool()>& goes_before);

  std::string path_;
  UniqueFd folder_;
  std::string name_;                // in the folder
  std::string fresh_;               // in the folder: the file that is written
  std::optional<struct stat> old_;  // as of `create`
  UniqueFd file_;                   // locked; closed: there is nothing to take back
};

}  // namespace elastic
