#include "collectives/device/landings.hpp"

#include <cstddef>
#include <utility>

namespace elastic::device {

void Landings::add(std::shared_ptr<Landing> landing) {
  constexpr std::size_t kMost = 4;
  MutexLock lock(mutex_);
  while (!under_way_.empty()) {
    const std::shared_ptr<Landing> first = under_way_.front();
    const bool is_one_too_many = under_way_.size() >= kMost;
    lock.unlock();
    if (is_one_too_many) (void)first->wait();
    const bool is_over = first->is_over();
    lock.lock();
    if (!is_over) break;
    under_way_.pop_front();
  }
  under_way_.push_back(std::move(landing));
}

void Landings::wait() {
  std::deque<std::shared_ptr<Landing>> under_way;
  {
    const MutexLock lock(mutex_);
    under_way = under_way_;
  }
  for (const auto& landing : under_way) (void)landing->wait();
}

}  // namespace elastic::device
