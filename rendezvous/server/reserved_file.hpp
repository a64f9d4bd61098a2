#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::rendezvous {

/// A file that grows at its end, into space that was taken ahead: what is reserved can be written
/// when the disk is full. Behind the end there are zero bytes.
///
/// Failures are kUnavailable where the disk is full, kInternal otherwise, and name the file.
class ReservedFile {
 public:
  /// `end`: where the next text goes. `reserved`: how far the file has space already.
  ReservedFile(UniqueFd file, std::string path, std::size_t end, std::size_t reserved);

  /// Takes space for that many bytes behind the end.
  Status reserve(std::size_t bytes);
  /// Writes at the end, durably. After kUnavailable the end is where it was.
  Status add(std::string_view text);
  /// Cuts off what lies behind the end, durably, and with it all space reserved.
  Status cut();

  std::size_t end() const { return end_; }
  std::size_t reserved() const { return reserved_ - end_; }

 private:
  UniqueFd file_;
  std::string path_;
  std::size_t end_;
  std::size_t reserved_;
};

/// The failure of a file by the present `errno`. kUnavailable: its disk is full.
Status file_failure(const std::string& path, const char* what);

}  // namespace elastic::rendezvous
