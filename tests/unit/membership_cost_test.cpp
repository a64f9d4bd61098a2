#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "membership_fixture.hpp"
#include "tests/unit/allocations.hpp"

/// The cost of events in jobs of different sizes, counted: whatever looks at every member copies
/// its name, which allocates memory, as names are long.
namespace elastic::rendezvous {
namespace {

using elastic::testing::allocations;

class CostTest : public MembershipTest {
 protected:
  static Names workers(std::size_t count) {
    Names names;
    for (std::size_t i = 0; i < count; ++i) {
      names.push_back("an-incarnation-has-thirty-two-letters-" + std::to_string(1000 + i));
    }
    return names;
  }

  /// Each member sends one in a heartbeat period, as they do.
  double per_heartbeat(std::size_t members) {
    const Names names = workers(members);
    start_with(names);
    ready(names);
    Heartbeat heartbeat{view().generation, {1, 0}};
    const std::size_t before = allocations();
    constexpr std::size_t kPeriods = 4;
    for (std::size_t beat = 0; beat < kPeriods * members; ++beat) {
      now_ += std::chrono::microseconds(50000 / members);
      if (beat % members == 0) ++heartbeat.positions[0];
      membership_->decide(Received{names[beat % members], heartbeat}, now_);
    }
    return static_cast<double>(allocations() - before) / static_cast<double>(kPeriods * members);
  }

  /// Without that of the first, after which workers can join.
  double per_ready(std::size_t members) {
    Names names = workers(members);
    start_with(names);
    ready({names.front()});
    names.erase(names.begin());
    const std::size_t before = allocations();
    ready(names);
    return static_cast<double>(allocations() - before) / static_cast<double>(names.size());
  }

  /// From the death of one to the next view, without the making of messages.
  double per_report(std::size_t members) {
    Names names = workers(members);
    start_with(names);
    ready(names);
    die(names.back());
    names.pop_back();
    const Freeze freeze = *last<Freeze>(names.front());
    const Report report{freeze.generation, freeze.round, {{5, ""}, {0, ""}}, 1, true, false};
    const std::size_t before = allocations();
    for (std::size_t i = 0; i + 1 < names.size(); ++i) {
      membership_->decide(Received{names[i], report}, now_);
    }
    EXPECT_EQ(phase(), Phase::kChanging);
    return static_cast<double>(allocations() - before) / static_cast<double>(names.size() - 1);
  }
};

TEST_F(CostTest, OfAHeartbeatDoesNotGrowWithTheJob) {
  const double of_100 = per_heartbeat(100);
  EXPECT_LT(per_heartbeat(1000), 1.5 * of_100 + 1);
}

TEST_F(CostTest, OfAReportDoesNotGrowWithTheJob) {
  const double of_100 = per_report(100);
  EXPECT_LT(per_report(1000), 1.5 * of_100 + 1);
}

TEST_F(CostTest, OfAReadyDoesNotGrowWithTheJob) {
  const double of_100 = per_ready(100);
  EXPECT_LT(per_ready(1000), 1.5 * of_100 + 1);
}

TEST_F(CostTest, AViewIsOneMessageForAll) {
  Names names = workers(100);
  const std::string last = names.back();
  names.pop_back();
  MembershipOptions options;
  options.initial_np = 100;
  start(options);
  for (const std::string& name : names) join(name);
  const Decision formed = join(last);
  EXPECT_EQ(std::ranges::count_if(formed.actions,
                                  [](const Action& action) {
                                    const auto* sent = std::get_if<SendTo>(&action);
                                    return sent != nullptr &&
                                           std::holds_alternative<Announce>(sent->message);
                                  }),
            1);
}

}  // namespace
}  // namespace elastic::rendezvous
