#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace elastic::simulation {

/// The number and the bytes of the server's messages, by the number of connected workers.
class Costs {
 public:
  /// The most workers of each class. A job counts in the first class that is large enough.
  static constexpr std::array<std::size_t, 8> kClasses{2, 4, 8, 16, 32, 64, 128, 512};

  struct Class {
    std::uint64_t events = 0;
    std::uint64_t answered = 0;  ///< events for which it sends anything
    std::uint64_t messages = 0;
    std::uint64_t most_messages = 0;  ///< for one event
    std::uint64_t bytes = 0;          ///< encoded
    std::uint64_t most_bytes = 0;
  };

  void count(std::size_t workers, std::uint64_t messages, std::uint64_t bytes) {
    const auto at = std::lower_bound(kClasses.begin(), kClasses.end() - 1, workers);
    Class& its = classes_[static_cast<std::size_t>(at - kClasses.begin())];
    ++its.events;
    its.answered += messages > 0 ? 1 : 0;
    its.messages += messages;
    its.bytes += bytes;
    its.most_messages = std::max(its.most_messages, messages);
    its.most_bytes = std::max(its.most_bytes, bytes);
  }
  const std::array<Class, kClasses.size()>& classes() const { return classes_; }

  Costs& operator+=(const Costs& other) {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      Class& its = classes_[i];
      const Class& others = other.classes_[i];
      its.events += others.events;
      its.answered += others.answered;
      its.messages += others.messages;
      its.bytes += others.bytes;
      its.most_messages = std::max(its.most_messages, others.most_messages);
      its.most_bytes = std::max(its.most_bytes, others.most_bytes);
    }
    return *this;
  }

 private:
  std::array<Class, kClasses.size()> classes_{};
};

}  // namespace elastic::simulation
