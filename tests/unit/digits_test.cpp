#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/learning_rate.hpp"
#include "elastic/optimizers.hpp"
#include "elastic/sampler.hpp"
#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"
#include "examples/digits/schedule.hpp"
#include "examples/digits/usage.hpp"
#include "tests/slowness.hpp"

namespace digits {
namespace {

using ::testing::HasSubstr;

std::vector<Sample> all_samples() {
  return read_samples(ELASTIC_DIGITS_CSV);
}

/// A file that is gone when the test is over.
class Scratch {
 public:
  explicit Scratch(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("digits_test_" + std::to_string(::getpid()) + ".csv")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~Scratch() { std::filesystem::remove(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string error_of(const std::string& content) {
  const Scratch file(content);
  try {
    read_samples(file.path());
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::string line_of(const std::string& pixel, const std::string& label) {
  std::string line;
  for (std::size_t at = 0; at < kPixels; ++at) line += pixel + ",";
  return line + label + "\n";
}

TEST(DigitsDataset, HasAllRows) {
  const std::vector<Sample> samples = all_samples();
  ASSERT_EQ(samples.size(), 1797U);
  std::set<int> labels;
  for (const Sample& sample : samples) {
    labels.insert(sample.label);
    for (const float pixel : sample.pixels) EXPECT_TRUE(pixel >= 0 && pixel <= 1);
  }
  EXPECT_EQ(labels.size(), 10U);
  EXPECT_EQ(samples[0].label, 0);
  EXPECT_EQ(samples[0].pixels[2], 5.0F / 16);
}

TEST(DigitsDataset, SplitsAlwaysTheSame) {
  const Dataset once = split(all_samples());
  const Dataset again = split(all_samples());
  EXPECT_EQ(once.test.size(), 360U);
  EXPECT_EQ(once.training.size(), 1437U);
  EXPECT_EQ(once.test[7].pixels, again.test[7].pixels);
  EXPECT_THROW(split(std::vector<Sample>(360)), DataError);
}

TEST(DigitsDataset, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(error_of(line_of("16", "9")), "no error");
  EXPECT_THAT(error_of(""), HasSubstr("no samples"));
  EXPECT_THAT(error_of(line_of("1", "3") + "5,x,2\n"), HasSubstr(":2: expected a whole number"));
  EXPECT_THAT(error_of(line_of("17", "3")), HasSubstr("from 0 to 16"));
  EXPECT_THAT(error_of(line_of("1", "10")), HasSubstr("from 0 to 9"));
  EXPECT_THAT(error_of(line_of("1", "3,4")), HasSubstr(":1: more than"));
  EXPECT_THAT(error_of(std::string(100000, '1')), HasSubstr(":1: "));
  try {
    read_samples("/nonexistent/digits.csv.gz");
    FAIL() << "a file that does not exist";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/digits.csv.gz: cannot be opened"));
  }
}

TEST(DigitsDataset, NoticesATruncatedFile) {
  std::ifstream whole(ELASTIC_DIGITS_CSV, std::ios::binary);
  std::string half(20000, '\0');
  whole.read(half.data(), static_cast<std::streamsize>(half.size()));
  EXPECT_NE(error_of(half), "no error");
}

TEST(DigitsNetwork, GradientIsThatOfFiniteDifferences) {
  const std::vector<Sample> samples = all_samples();
  Parameters weights = initial_parameters(3);
  Network network;
  Parameters gradient;
  const std::size_t count = 5;
  for (std::size_t at = 0; at < count; ++at) network.add_gradient(weights, samples[at], gradient);

  const auto total = [&] {
    double sum = 0;
    for (std::size_t at = 0; at < count; ++at) sum += double{network.loss(weights, samples[at])};
    return sum;
  };
  const float width = 1e-3F;
  int checked = 0;
  for (std::size_t at = 0; at < weights.values().size(); at += 7) {
    const float kept = weights.values()[at];
    weights.values()[at] = kept + width;
    const double above = total();
    weights.values()[at] = kept - width;
    const double below = total();
    weights.values()[at] = kept;
    const double expected = (above - below) / (2 * double{width});
    const double actual = double{gradient.values()[at]};
    EXPECT_NEAR(actual, expected, 4e-3 + 0.01 * std::abs(expected)) << "parameter " << at;
    ++checked;
  }
  EXPECT_GT(checked, 600);
}

TEST(DigitsNetwork, LossIsTheOneOfTheGradient) {
  const std::vector<Sample> samples = all_samples();
  const Parameters weights = initial_parameters(3);
  Network network;
  Parameters gradient;
  EXPECT_EQ(network.add_gradient(weights, samples[0], gradient), network.loss(weights, samples[0]));
}

TEST(DigitsSchedule, HasAllKinds) {
  const auto rate = [](ScheduleKind kind, double samples) {
    return schedule(kind, 0.5, 300).rate(samples);
  };
  EXPECT_EQ(rate(ScheduleKind::kConstant, 299), 0.5);
  EXPECT_EQ(rate(ScheduleKind::kStep, 199), 0.5);
  EXPECT_EQ(rate(ScheduleKind::kStep, 200), 0.05);
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kCosine, 150), 0.25);
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kPolynomial, 150), 0.125);
  EXPECT_EQ(schedule(ScheduleKind::kStep, 0.5, 300, 20).rate(0), 0.05);
  EXPECT_DOUBLE_EQ(schedule(ScheduleKind::kStep, 0.5, 300, 20).rate(10), 0.275);
}

TEST(DigitsUsage, CountsWhatWasNotUsedExactlyOnce) {
  Usage usage(4);
  usage.add(std::vector<float>{1, 1, 0, 0});
  usage.add(std::vector<float>{0, 1, 0, 1});
  usage.audit();
  EXPECT_EQ(usage.epochs, 1);
  EXPECT_EQ(usage.used, 2);
  EXPECT_EQ(usage.missed, 1);
  EXPECT_EQ(usage.twice, 1);
  usage.add(std::vector<float>{1, 1, 1, 1});
  usage.audit();
  EXPECT_EQ(usage.used, 6);
  EXPECT_EQ(usage.missed, 1);
}

/// Trains one worker with batches of `batch` and the other defaults of train_digits.
double train(std::uint64_t seed, std::size_t batch, std::size_t epochs) {
  const Dataset data = split(all_samples());
  elastic::Sampler sampler(data.training.size(), seed);
  const std::vector<elastic::WorkerId> members{1};
  sampler.set_members(members, 1);
  const double in_all = static_cast<double>(data.training.size() * epochs);
  elastic::LearningRate learning_rate(
      {.schedule = schedule(ScheduleKind::kStep, 0.02, in_all), .batch_reference = 16});
  Parameters weights = initial_parameters(seed);
  elastic::MomentumSgd optimizer({weights.values()}, {.momentum = 0.9});
  Network network;
  while (learning_rate.progress() < in_all) {
    Parameters gradient;
    const auto share = sampler.next(batch);
    for (const std::size_t index : share) {
      network.add_gradient(weights, data.training[index], gradient);
    }
    const auto full = static_cast<double>(batch);
    const elastic::Rate rate = learning_rate.step(full, static_cast<double>(share.size()));
    optimizer.step({{gradient.values()}}, full, rate);
    sampler.commit(members);
  }
  return accuracy(weights, data.test);
}

TEST(DigitsTraining, LearnsTheDigits) {
  for (std::uint64_t seed = 1; seed <= 1 + 2 / elastic::kSlowness; ++seed) {
    const double reached = train(seed, 64, 30);
    RecordProperty("accuracy_of_seed_" + std::to_string(seed), std::to_string(reached));
    EXPECT_GE(reached, 0.96) << "seed " << seed;
  }
}

}  // namespace
}  // namespace digits
