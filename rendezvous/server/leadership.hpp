#pragma once

#include "base/clock.hpp"

namespace elastic::rendezvous {

/// Whether this server leads its job, by its own clock: it does for as long as its lease in the
/// store surely lasts. Pure.
///
/// The store counts a lease from when a request arrives there, this server from when it sent the
/// request, and it stops a tenth earlier. So it has stopped when another can begin, as long as no
/// clock is a tenth faster than the other.
class Leadership {
 public:
  /// `asked`: before the request was sent that began the lease, or renewed it.
  void renewed(TimePoint asked, Duration lease) {
    ends_ = asked + lease - lease / kMargin;
    renew_at_ = asked + lease / kRenewals;
  }
  void lose() { ends_ = TimePoint::min(); }

  bool leads(TimePoint now) const { return now < ends_; }
  TimePoint ends() const { return ends_; }
  /// Early enough for another attempt, by way of another member of the store.
  TimePoint renew_at() const { return renew_at_; }

 private:
  static constexpr int kMargin = 10;
  static constexpr int kRenewals = 3;

  TimePoint ends_ = TimePoint::min();
  TimePoint renew_at_ = TimePoint::min();
};

}  // namespace elastic::rendezvous
