#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"

namespace elastic::timeline {

/// Names of tensors and causes of view changes, by the numbers that stand for them in events of a
/// fixed size. Thread-safe.
class Texts {
 public:
  /// With more, a program that makes up new names in every step would fill the memory.
  static constexpr std::size_t kMost = 1 << 16;
  static constexpr std::uint32_t kNone = 0;

  /// \returns the number of `text`, from 1 on; kNone if there is no room for one more.
  std::uint32_t number_of(std::string_view text);
  /// \returns the text of a number; empty for kNone.
  std::string text(std::uint32_t number) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_ ELASTIC_GUARDED_BY(mutex_);
  std::vector<std::string> texts_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::timeline
