// The search for the size of buckets, on steps whose time is a function of it.
#include "coordinator/bucket_tuning.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr int kTensors = 10;

/// A program whose steps have ten tensors, and the buckets that the leader makes for it.
class Program {
 public:
  using Time = std::function<double(std::uint64_t bucket_bytes)>;

  Program(std::uint64_t begins_with, Time seconds)
      : tuning_(begins_with), seconds_(std::move(seconds)) {
    tuning_.begin_view(4);
  }

  void step() {
    submit("first", true);
    for (int i = 1; i < kTensors; ++i) submit(std::to_string(i), false);
    now_ += std::chrono::duration_cast<TimePoint::duration>(
        std::chrono::duration<double>(seconds_(in_use_)));
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }
  void submit(const std::string& name, bool idle) {
    if (const auto changed = tuning_.on_submit(name, tensor_bytes_, idle, now_)) in_use_ = *changed;
  }
  void begin_view(int ranks) { tuning_.begin_view(ranks); }
  void set_seconds(Time seconds) { seconds_ = std::move(seconds); }
  void set_tensor_bytes(std::uint64_t bytes) { tensor_bytes_ = bytes; }

  std::uint64_t in_use() const { return in_use_; }
  BucketTuning& tuning() { return tuning_; }

 private:
  BucketTuning tuning_;
  Time seconds_;
  std::uint64_t tensor_bytes_ = 32 * kMiB;
  std::uint64_t in_use_ = 0;
  TimePoint now_{};
};

/// The farther from `best`, by powers of two, the longer.
Program::Time shortest_at(std::uint64_t best) {
  return [best](std::uint64_t bytes) {
    const double distance =
        std::abs(std::log2(static_cast<double>(bytes) / static_cast<double>(best)));
    return 0.1 * (1 + 0.1 * distance);
  };
}

TEST(BucketTuning, FindsSmallerBuckets) {
  Program program(16 * kMiB, shortest_at(kMiB));
  program.run(500);
  EXPECT_TRUE(program.tuning().is_over());
  EXPECT_EQ(program.in_use(), kMiB);
}

TEST(BucketTuning, FindsLargerBuckets) {
  Program program(16 * kMiB, shortest_at(256 * kMiB));
  program.run(500);
  EXPECT_TRUE(program.tuning().is_over());
  EXPECT_EQ(program.in_use(), 256 * kMiB);
}

TEST(BucketTuning, SaysWhatItTried) {
  Program program(16 * kMiB, shortest_at(4 * kMiB));
  program.run(500);
  EXPECT_THAT(
      program.tuning().take_log(),
      ElementsAre(HasSubstr("buckets of 4 MiB a step of 4 ranks takes 100.000 ms, with 16 MiB "
                            "it takes 120.000 ms: taken"),
                  HasSubstr("1 MiB a step of 4 ranks takes 120.000 ms, with 4 MiB it takes "
                            "100.000 ms: not taken, as it is not faster in each turn"),
                  HasSubstr("buckets of 4 MiB stay for 4 ranks")));
  EXPECT_THAT(program.tuning().take_log(), IsEmpty());
}

TEST(BucketTuning, StaysWhereNothingIsFaster) {
  Program program(16 * kMiB, shortest_at(16 * kMiB));
  program.run(500);
  EXPECT_TRUE(program.tuning().is_over());
  EXPECT_EQ(program.in_use(), 16 * kMiB);
}

TEST(BucketTuning, TakesNoNoiseForAGain) {
  int changed = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> noise(0, 0.3);
    Program program(16 * kMiB, [&](std::uint64_t) { return 0.1 * noise(random); });
    program.run(500);
    EXPECT_TRUE(program.tuning().is_over()) << "seed " << seed;
    if (program.in_use() != 16 * kMiB) ++changed;
  }
  EXPECT_LE(changed, 40);  // by chance a candidate wins four turns in one of sixteen cases at most
}

TEST(BucketTuning, FindsAGainInNoise) {
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> noise(0, 0.05);
    const Program::Time seconds = shortest_at(kMiB);
    Program program(16 * kMiB, [&](std::uint64_t bytes) { return seconds(bytes) * noise(random); });
    program.run(500);
    if (program.in_use() == kMiB) ++found;
  }
  EXPECT_GE(found, 95);
}

TEST(BucketTuning, RemembersWhatItFoundByTheNumberOfRanks) {
  Program program(16 * kMiB, shortest_at(kMiB));
  program.run(500);
  program.begin_view(3);
  EXPECT_FALSE(program.tuning().is_over());
  program.set_seconds(shortest_at(64 * kMiB));
  program.run(500);
  EXPECT_EQ(program.in_use(), 64 * kMiB);
  program.begin_view(4);
  EXPECT_TRUE(program.tuning().is_over());
  program.step();
  EXPECT_EQ(program.in_use(), kMiB);
}

TEST(BucketTuning, GoesOnAfterAViewChangeInTheMiddleOfAStep) {
  Program program(16 * kMiB, shortest_at(kMiB));
  for (int round = 0; round < 5; ++round) {
    program.run(20);
    program.submit("first", true);
    program.submit("1", false);
    program.begin_view(round % 2 == 0 ? 3 : 4);
    program.submit("2", false);
  }
  program.run(1000);
  EXPECT_TRUE(program.tuning().is_over());
  EXPECT_EQ(program.in_use(), kMiB);
}

TEST(BucketTuning, BeginsAgainWhereAStepHasOtherTensors) {
  Program program(16 * kMiB, shortest_at(16 * kMiB));
  program.run(10);
  program.set_tensor_bytes(40 * kMiB);
  program.set_seconds(shortest_at(4 * kMiB));
  program.run(500);
  EXPECT_TRUE(program.tuning().is_over());
  EXPECT_EQ(program.in_use(), 4 * kMiB);
}

TEST(BucketTuning, TriesNoBucketsLargerThanAStep) {
  Program program(16 * kMiB, shortest_at(256 * kMiB));
  program.set_tensor_bytes(kMiB);
  program.run(500);
  EXPECT_TRUE(program.tuning().is_over());
  EXPECT_EQ(program.in_use(), 16 * kMiB);
}

TEST(BucketTuning, ChangesNothingWhileTensorsAreUnderWay) {
  Program program(16 * kMiB, shortest_at(kMiB));
  for (int i = 0; i < 500; ++i) program.submit(std::to_string(i % kTensors), false);
  EXPECT_EQ(program.in_use(), 0U);
  EXPECT_FALSE(program.tuning().is_over());
}

TEST(BucketTuning, ProgramsWithNewNamesInEachStepKeepWhatTheyHave) {
  Program program(16 * kMiB, shortest_at(kMiB));
  for (int i = 0; i < 500; ++i) program.submit("new " + std::to_string(i), true);
  EXPECT_EQ(program.in_use(), 16 * kMiB);
}

}  // namespace
}  // namespace elastic::coordinator
