#include "timeline/texts.hpp"

namespace elastic::timeline {

std::uint32_t Texts::number_of(std::string_view text) {
  const MutexLock lock(mutex_);
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  if (texts_.size() == kMost) return kNone;
  texts_.emplace_back(text);
  const auto number = static_cast<std::uint32_t>(texts_.size());
  numbers_.emplace(text, number);
  return number;
}

std::string Texts::text(std::uint32_t number) const {
  const MutexLock lock(mutex_);
  return number == kNone ? std::string() : texts_[number - 1];
}

}  // namespace elastic::timeline
