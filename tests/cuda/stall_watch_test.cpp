#include "collectives/device/stall_watch.hpp"

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Milliseconds kSoon{1};

/// Keeps what was warned of.
class Warnings {
 public:
  StallWatch::Warn take() {
    return [this](const std::string& message) {
      const std::lock_guard<std::mutex> lock(mutex_);
      messages_.push_back(message);
      changed_.notify_all();
    };
  }
  /// Waits for as many.
  std::vector<std::string> first(std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return messages_.size() >= count; });
    return {messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> messages_;
};

TEST(StallWatch, WarnsOfAWaitAgainAndAgain) {
  Warnings warnings;
  StallWatch watch(kSoon, warnings.take());
  const StallWatch::Wait wait(watch, "a call waits for a device");
  for (const std::string& message : warnings.first(3)) {
    EXPECT_THAT(message, AllOf(HasSubstr("a call waits for a device, for "),
                               HasSubstr("has not come to an end")));
  }
}

TEST(StallWatch, WarnsOfEachThatLasts) {
  Warnings warnings;
  StallWatch watch(kSoon, warnings.take());
  std::optional<StallWatch::Wait> first(std::in_place, watch, "the first");
  EXPECT_THAT(warnings.first(1).back(), HasSubstr("the first"));
  first.reset();
  const StallWatch::Wait second(watch, "the second");
  // A warning of the first wait may have been under way and come in between.
  std::size_t seen = 2;
  while (warnings.first(seen).back().find("the second") == std::string::npos) ++seen;
}

TEST(StallWatch, SaysNothingOfWhatEndsInTime) {
  std::vector<std::string> messages;
  {
    StallWatch watch(std::chrono::hours(1),
                     [&](const std::string& message) { messages.push_back(message); });
    for (int i = 0; i < 100; ++i) const StallWatch::Wait wait(watch, "a call");
  }
  EXPECT_TRUE(messages.empty());
}

TEST(StallWatch, TakesAnyDuration) {
  StallWatch watch(Milliseconds::max(), [](const std::string& message) { FAIL() << message; });
  const StallWatch::Wait wait(watch, "a call");
}

}  // namespace
}  // namespace elastic::device
