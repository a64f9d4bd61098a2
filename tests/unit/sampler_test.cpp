#include "elastic/sampler.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "training/permutation.hpp"

namespace elastic {
namespace {

using Workers = std::vector<WorkerId>;
using Samples = std::vector<std::size_t>;

Samples copy(std::span<const std::size_t> share) {
  return {share.begin(), share.end()};
}

Sampler sampler_of(std::size_t size, const Workers& members, WorkerId self) {
  Sampler sampler(size, 42);
  sampler.set_members(members, self);
  return sampler;
}

TEST(Permutation, IsTheSameOnEveryPlatform) {
  EXPECT_EQ(training::permutation(8, 1, 0), (Samples{4, 2, 0, 5, 6, 1, 7, 3}));
  EXPECT_EQ(training::permutation(8, 1, 1), (Samples{6, 1, 7, 0, 3, 4, 2, 5}));
  EXPECT_EQ(training::permutation(1, 1, 0), (Samples{0}));
}

TEST(Permutation, TakesEverySampleOnceAndDependsOnSeedAndEpoch) {
  Samples sorted = training::permutation(1000, 7, 3);
  EXPECT_NE(sorted, training::permutation(1000, 7, 4));
  EXPECT_NE(sorted, training::permutation(1000, 3, 7));
  std::sort(sorted.begin(), sorted.end());
  Samples expected(1000);
  std::iota(expected.begin(), expected.end(), std::size_t{0});
  EXPECT_EQ(sorted, expected);
}

TEST(Sampler, SplitsTheTailEvenlyAndThenBeginsTheNextEpoch) {
  Sampler sampler = sampler_of(10, {7, 8, 9}, 8);
  EXPECT_EQ(sampler.next(2).size(), 2U);
  EXPECT_EQ(sampler.global_batch(), 6U);
  sampler.commit(Workers{7, 8, 9});
  EXPECT_EQ(sampler.done_in_epoch(), 6U);
  EXPECT_EQ(sampler.next(2).size(), 1U);  // 4 left for three: 2, 1, 1
  EXPECT_EQ(sampler.global_batch(), 4U);
  sampler.commit(Workers{7, 8, 9});
  EXPECT_EQ(sampler.done_in_epoch(), 10U);
  EXPECT_EQ(sampler.epoch(), 0U);
  sampler.next(2);
  EXPECT_EQ(sampler.epoch(), 1U);
  EXPECT_EQ(sampler.done_in_epoch(), 0U);
}

TEST(Sampler, GivesEmptySharesWhereFewerSamplesThanMembersAreLeft) {
  Sampler sampler = sampler_of(2, {1, 2, 3}, 3);
  EXPECT_TRUE(sampler.next(5).empty());
  EXPECT_EQ(sampler.global_batch(), 2U);
}

TEST(Sampler, DrawsTheSameAgainWithoutCommit) {
  Sampler sampler = sampler_of(100, {1, 2}, 2);
  const Samples first = copy(sampler.next(8));
  const auto saved = sampler.save();
  EXPECT_EQ(copy(sampler.next(8)), first);
  EXPECT_EQ(sampler.save(), saved);
  EXPECT_EQ(sampler.done_in_epoch(), 0U);
  sampler.commit(Workers{1, 2});
  EXPECT_NE(copy(sampler.next(8)), first);
}

TEST(Sampler, ReturnsWhatALostMemberHadDrawn) {
  const Workers members{1, 2, 3};
  Sampler first = sampler_of(100, members, 1);
  Sampler second = sampler_of(100, members, 2);
  Sampler third = sampler_of(100, members, 3);
  first.next(10);
  const Samples lost = copy(second.next(10));
  third.next(10);
  first.commit(Workers{1, 3});
  third.commit(Workers{1, 3});
  EXPECT_EQ(first.done_in_epoch(), 20U);
  EXPECT_EQ(first.save(), third.save());
  EXPECT_EQ(copy(first.next(10)), lost);
  EXPECT_EQ(first.global_batch(), 20U);
}

TEST(Sampler, ContinuesOnAJoinerWhereTheMembersAre) {
  Sampler member = sampler_of(50, {1, 2}, 1);
  member.next(4);
  member.commit(Workers{1});
  Sampler joiner(50, 1000);  // another seed: the job's counts
  joiner.load(member.save());
  const Workers members{1, 9};
  member.set_members(members, 1);
  joiner.set_members(members, 9);
  Samples both = copy(member.next(23));
  const Samples other = copy(joiner.next(23));
  EXPECT_EQ(member.global_batch(), 46U);
  both.insert(both.end(), other.begin(), other.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(std::unique(both.begin(), both.end()), both.end());
  EXPECT_EQ(both.size(), 46U);
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Sampler(0, 1), Error);
  Sampler sampler(10, 1);
  EXPECT_THROW(sampler.next(1), Error);
  EXPECT_THROW(sampler.set_members(Workers{1, 2}, 3), Error);
  EXPECT_THROW(sampler.set_members(Workers{1, 2, 1}, 1), Error);
  sampler.set_members(Workers{1, 2}, 1);
  EXPECT_THROW(sampler.next(0), Error);
  sampler.next(2);
  EXPECT_THROW(sampler.commit(Workers{}), Error);
  EXPECT_THROW(sampler.commit(Workers{5}), Error);
  EXPECT_EQ(sampler.global_batch(), 4U);

  const auto saved = sampler.save();
  EXPECT_THROW(Sampler(11, 1).load(saved), Error);
  EXPECT_THROW(sampler.load(std::span(saved).first(saved.size() - 1)), Error);
  auto broken = saved;
  broken[broken.size() - 8] = std::byte{11};  // the end of the only range, beyond the samples
  EXPECT_THROW(sampler.load(broken), Error);
  EXPECT_EQ(sampler.save(), saved);
}

TEST(Sampler, SurvivesBatchesNearTheLimitOfTheType) {
  Sampler sampler = sampler_of(10, {1, 2, 3}, 1);
  EXPECT_EQ(sampler.next(static_cast<std::size_t>(-1)).size(), 4U);
  EXPECT_EQ(sampler.global_batch(), 10U);
}

/// Every worker of a job with its own sampler, and who used what.
class Job {
 public:
  Job(unsigned seed, std::size_t size) : random_(seed), size_(size) {}

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      if (step == 0 || below(6) == 0) change_members();
      take_step(1 + below(9));
    }
  }

  int epochs_checked() const { return epochs_checked_; }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

  /// Between steps: some leave, some join and receive the state, and the order may change.
  void change_members() {
    while (members_.size() > 1 && below(3) == 0) drop(below(members_.size()));
    const std::size_t joiners = members_.empty() ? 1 + below(6) : below(4);
    const auto saved =
        members_.empty() ? std::nullopt : std::optional(samplers_.at(members_.front()).save());
    for (std::size_t n = 0; n < joiners; ++n) {
      const WorkerId worker = ++last_id_;
      members_.push_back(worker);
      Sampler& sampler =
          samplers_.emplace(worker, Sampler(size_, saved ? worker : 5)).first->second;
      if (saved) sampler.load(*saved);
    }
    for (const WorkerId worker : members_) samplers_.at(worker).set_members(members_, worker);
  }

  void drop(std::size_t at) {
    samplers_.erase(members_[at]);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// All draw; some may die; the operation counts either all that drew (it was committed) or the
  /// survivors (it was replayed), and the survivors commit that to their samplers. One that is dead
  /// but was counted is still a member in the next draw, and is missing from what that counts.
  void take_step(std::size_t batch) {
    const Workers drew = members_;
    std::map<WorkerId, Samples> shares;
    for (const WorkerId worker : drew) shares[worker] = copy(samplers_.at(worker).next(batch));
    check_shares(shares, batch);
    while (members_.size() > 1 && below(5) == 0) drop(below(members_.size()));
    const Workers contributors = below(2) == 0 ? drew : members_;
    for (const WorkerId worker : contributors) {
      for (const std::size_t sample : shares[worker]) ++used_[sample];
    }
    for (const WorkerId worker : members_) samplers_.at(worker).commit(contributors);
    check_agreement();
  }

  void check_shares(const std::map<WorkerId, Samples>& shares, std::size_t batch) {
    Samples all;
    for (const auto& [worker, share] : shares) {
      EXPECT_LE(share.size(), batch);
      all.insert(all.end(), share.begin(), share.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "drawn by two members";
    EXPECT_LE(all.size(), samplers_.at(members_.front()).global_batch());
  }

  void check_agreement() {
    const Sampler& first = samplers_.at(members_.front());
    for (const WorkerId worker : members_) {
      EXPECT_EQ(samplers_.at(worker).save(), first.save());
    }
    EXPECT_EQ(first.done_in_epoch(), used_.size());
    for (const auto& [sample, times] : used_) EXPECT_EQ(times, 1) << "sample " << sample;
    if (first.done_in_epoch() < size_) return;
    EXPECT_EQ(used_.size(), size_);
    used_.clear();
    ++epochs_checked_;
  }

  std::mt19937 random_;
  std::size_t size_;
  WorkerId last_id_ = 0;
  Workers members_;  // alive, in rank order
  std::map<WorkerId, Sampler> samplers_;
  std::map<std::size_t, int> used_;
  int epochs_checked_ = 0;
};

TEST(Sampler, UsesEverySampleOnceInAnyHistory) {
  int epochs = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Job job(seed, 1 + seed % 97);
    job.run(60);
    ASSERT_FALSE(HasFailure());
    epochs += job.epochs_checked();
  }
  RecordProperty("epochs", epochs);
  EXPECT_GT(epochs, 1000);
}

}  // namespace
}  // namespace elastic
