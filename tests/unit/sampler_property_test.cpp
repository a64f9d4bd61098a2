// Samplers of a job under random histories of membership.
#include <algorithm>
#include <map>
#include <optional>
#include <rapidcheck.h>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/sampler.hpp"
#include "tests/slowness.hpp"

namespace elastic {
namespace {

using Workers = std::vector<WorkerId>;
using Samples = std::vector<std::size_t>;

std::size_t below(std::size_t bound) {
  return *rc::gen::inRange<std::size_t>(0, bound);
}
bool one_in(std::size_t n) {
  return below(n) == n - 1;  // shrinks to false
}

/// All workers of a job, each with its sampler, and the samples that each step has used.
class Job {
 public:
  explicit Job(std::size_t size) : size_(size) { admit(1 + below(5)); }

  /// Between steps some leave, some join and receive the state, and the order may change.
  void change_members() {
    while (members_.size() > 1 && one_in(3)) drop(below(members_.size()));
    if (one_in(3)) std::reverse(members_.begin(), members_.end());
    admit(below(3));
  }

  /// All draw; some may die; the operation counts either all that drew (it was committed) or the
  /// survivors (it was replayed), and the survivors commit that to their samplers. One that is dead
  /// but was counted is still a member in the next draw, and is missing from what that counts.
  void step(std::size_t batch) {
    const Workers drew = members_;
    std::map<WorkerId, Samples> shares;
    for (const WorkerId worker : drew) {
      const auto share = samplers_.at(worker).next(batch);
      RC_ASSERT(share.size() <= batch);
      shares[worker] = {share.begin(), share.end()};
    }
    while (members_.size() > 1 && one_in(4)) drop(below(members_.size()));
    const Workers contributors = one_in(2) ? members_ : drew;
    for (const WorkerId worker : contributors) use(shares[worker]);
    commit(contributors);
  }

  /// The same for virtual workers: all of them are computed, whichever workers die.
  void virtual_step(std::size_t count, std::size_t batch) {
    for (const WorkerId worker : members_) samplers_.at(worker).draw(count, batch);
    for (std::size_t one = 0; one < count; ++one) {
      const auto share = samplers_.at(members_[one % members_.size()]).share(one);
      use({share.begin(), share.end()});
    }
    while (members_.size() > 1 && one_in(4)) drop(below(members_.size()));
    commit(members_);
  }

  /// All workers die, and new ones continue with the state that one of them saved.
  void restart() {
    const auto saved = samplers_.at(members_.front()).save();
    while (!members_.empty()) drop(0);
    admit(1 + below(4), saved);
  }

 private:
  void admit(std::size_t joiners, std::optional<std::vector<std::byte>> saved = std::nullopt) {
    if (!members_.empty()) saved = samplers_.at(members_.front()).save();
    for (std::size_t n = 0; n < joiners; ++n) {
      const WorkerId worker = ++last_id_;
      members_.push_back(worker);
      // Another seed: the job's counts.
      samplers_.emplace(worker, Sampler(size_, saved ? worker : 5));
      if (saved) samplers_.at(worker).load(*saved);
    }
    for (const WorkerId worker : members_) samplers_.at(worker).set_members(members_, worker);
  }

  void drop(std::size_t at) {
    samplers_.erase(members_[at]);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void use(const Samples& samples) {
    for (const std::size_t sample : samples) {
      RC_ASSERT(sample < size_);
      RC_ASSERT(used_.insert(sample).second);
    }
  }

  void commit(const Workers& contributors) {
    for (const WorkerId worker : members_) samplers_.at(worker).commit(contributors);
    const Sampler& first = samplers_.at(members_.front());
    for (const WorkerId worker : members_) {
      RC_ASSERT(samplers_.at(worker).save() == first.save());
    }
    RC_ASSERT(first.done_in_epoch() == used_.size());
    if (used_.size() == size_) used_.clear();
  }

  std::size_t size_;
  WorkerId last_id_ = 0;
  Workers members_;  // alive, in rank order
  std::map<WorkerId, Sampler> samplers_;
  std::set<std::size_t> used_;  // in this epoch
};

TEST(Sampler, UsesEverySampleOnceInAnyHistory) {
  EXPECT_TRUE(rc::check("every sample of an epoch is used once", [] {
    Job job(1 + below(60));
    const std::size_t steps = below(static_cast<std::size_t>(200 / kSlowness));
    for (std::size_t step = 0; step < steps; ++step) {
      if (one_in(3)) job.change_members();
      if (one_in(10)) job.restart();
      if (one_in(4)) {
        job.virtual_step(1 + below(6), 1 + below(3));
      } else {
        job.step(1 + below(9));
      }
    }
  }));
}

}  // namespace
}  // namespace elastic
