#pragma once

#include <cstddef>
#include <filesystem>

#include "integration/job.hpp"

namespace elastic::testing {

/// A disk of a few KiB, seen by this process and its children only. Needs root.
class TinyDisk {
 public:
  explicit TinyDisk(std::size_t bytes);
  ~TinyDisk();
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;

  /// False where this process may not mount. Say so when skipping for it.
  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return folder_.path(); }

  /// Leaves not a page free.
  void fill();
  /// Frees the space that `fill` took.
  void make_room();
  void grow(std::size_t bytes);

 private:
  ScratchFolder folder_;
  bool mounted_ = false;
};

}  // namespace elastic::testing
