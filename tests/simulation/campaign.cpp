#include "campaign.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "world.hpp"

namespace elastic::simulation {

namespace {

/// Seeds that a thread takes at a time.
std::uint64_t share_of(const Campaign& campaign) {
  return campaign.large ? 1 : 100;
}

Findings run_share(const Campaign& campaign, std::uint64_t begin) {
  Findings findings;
  const std::uint64_t end = std::min(begin + share_of(campaign), campaign.seeds);
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::uint64_t seed = campaign.first_seed + i;
    World world{Scenario(seed, campaign.mutation, campaign.large)};
    std::string wrong = world.run();
    findings.tally += world.tally();
    if (!wrong.empty()) findings.failures.push_back({seed, std::move(wrong)});
  }
  return findings;
}

}  // namespace

Findings run(const Campaign& campaign) {
  Findings all;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (;;) {
      const std::uint64_t begin = next.fetch_add(share_of(campaign));
      if (begin >= campaign.seeds) return;
      Findings share = run_share(campaign, begin);
      const std::lock_guard<std::mutex> lock(mutex);
      all.tally += share.tally;
      std::move(share.failures.begin(), share.failures.end(), std::back_inserter(all.failures));
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < campaign.jobs; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  std::sort(all.failures.begin(), all.failures.end(),
            [](const auto& a, const auto& b) { return a.seed < b.seed; });
  return all;
}

}  // namespace elastic::simulation
