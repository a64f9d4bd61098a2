#include "descriptors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "threads.hpp"

namespace elastic::simulation {

ssize_t Descriptor::read(void* /*into*/, std::size_t /*bytes*/) {
  errno = EINVAL;
  return -1;
}
ssize_t Descriptor::write(const void* /*from*/, std::size_t /*bytes*/) {
  errno = EINVAL;
  return -1;
}

void Descriptor::changed() {
  for (Thread* const thread : polling_) Threads::active()->wake(*thread);
  if (const auto set = set_.lock()) set->changed();
}

int Descriptors::open(std::shared_ptr<Descriptor> what) {
  const auto free =
      std::find(open_.begin() + static_cast<std::ptrdiff_t>(taken_), open_.end(), nullptr);
  const auto at = static_cast<std::size_t>(free - open_.begin());
  if (free == open_.end()) open_.emplace_back();
  open_[at] = std::move(what);
  taken_ = at + 1;
  return kFirst + static_cast<int>(at);
}

bool Descriptors::close(int number) {
  if (find(number) == nullptr) return false;
  const auto at = static_cast<std::size_t>(number - kFirst);
  open_[at] = nullptr;
  taken_ = std::min(taken_, at);
  return true;
}

std::shared_ptr<Descriptor> Descriptors::find(int number) const {
  const auto at = static_cast<std::size_t>(number - kFirst);
  return number >= kFirst && at < open_.size() ? open_[at] : nullptr;
}

int Descriptors::poll(pollfd* watched, nfds_t count, int timeout) {
  Threads& threads = *Threads::active();
  const auto look = [&] {
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
      watched[i].revents = 0;
      if (watched[i].fd < 0) continue;
      const auto it = find(watched[i].fd);
      const int always = POLLHUP | POLLERR;
      const int now = it == nullptr ? POLLNVAL : it->ready() & (watched[i].events | always);
      watched[i].revents = static_cast<short>(now);
      ready += now != 0 ? 1 : 0;
    }
    return ready;
  };
  const TimePoint deadline = timeout < 0 ? TimePoint::max() : threads.now() + Milliseconds(timeout);
  for (;;) {
    const int ready = look();
    if (ready > 0 || timeout == 0) return ready;
    Thread& thread = *threads.current();
    std::vector<std::shared_ptr<Descriptor>> polled;
    for (nfds_t i = 0; i < count; ++i) {
      if (auto it = find(watched[i].fd)) {
        it->poll(thread);
        polled.push_back(std::move(it));
      }
    }
    const bool woken = threads.block(watched, "in poll", deadline);
    for (const auto& each : polled) each->stop_polling(thread);
    if (!woken) return look();
  }
}

ssize_t EventDescriptor::read(void* into, std::size_t /*bytes*/) {
  if (count_ == 0) {
    errno = EAGAIN;
    return -1;
  }
  std::memcpy(into, &count_, sizeof count_);
  count_ = 0;
  return sizeof count_;
}

ssize_t EventDescriptor::write(const void* from, std::size_t /*bytes*/) {
  std::uint64_t more = 0;
  std::memcpy(&more, from, sizeof more);
  count_ += more;
  changed();
  return sizeof more;
}

ssize_t TimerDescriptor::read(void* into, std::size_t /*bytes*/) {
  if (!expired_) {
    errno = EAGAIN;
    return -1;
  }
  const std::uint64_t once = 1;
  std::memcpy(into, &once, sizeof once);
  expired_ = false;
  return sizeof once;
}

void TimerDescriptor::arm(Duration delay) {
  expired_ = false;
  const std::uint64_t call = ++armed_;
  if (delay <= Duration::zero()) return;
  Threads::active()->after(delay, [self = weak_from_this(), call] {
    const auto timer = self.lock();
    if (!timer || call != timer->armed_) return;
    timer->expired_ = true;
    timer->changed();
  });
}

short EpollDescriptor::ready() const {
  const bool any = std::any_of(members_.begin(), members_.end(), [](const auto& each) {
    const auto member = each.lock();
    return member && (member->ready() & POLLIN) != 0;
  });
  return static_cast<short>(any ? POLLIN : 0);
}

void EpollDescriptor::add(const std::shared_ptr<Descriptor>& member) {
  members_.push_back(member);
  member->belong_to(weak_from_this());
}

}  // namespace elastic::simulation
