// The network of train_digits on a CUDA device next to that on the host.
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/state.hpp"
#include "examples/digits/cuda/cuda_model.hpp"
#include "examples/digits/host_model.hpp"

namespace digits {
namespace {

class DigitsModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      cuda_devices();
    } catch (const std::exception& error) {
      GTEST_SKIP() << error.what();
    }
    data_ = split(read_samples(ELASTIC_DIGITS_CSV));
    host_ = std::make_unique<HostModel>(options_, data_.training);
    device_ = on_device();
  }

  std::unique_ptr<Model> on_device(std::uint64_t seed = 3) const {
    return make_cuda_model({.seed = seed, .momentum = options_.momentum}, data_.training, 0);
  }
  /// The sums of `count` samples from sample `first` on.
  StepSums sums(Model& model, std::size_t first, std::size_t count) const {
    std::vector<std::size_t> samples(count);
    std::iota(samples.begin(), samples.end(), first);
    StepSums sums(data_.training.size());
    model.begin_step();
    model.add_gradients(samples, sums);
    model.collect(sums);
    return sums;
  }
  /// Steps with gradients of the model's own.
  void train(Model& model, int steps) const {
    for (int step = 0; step < steps; ++step) {
      const auto first = static_cast<std::size_t>(step) * 32;
      const elastic::Rate rate{.base = 0.05, .gamma = 1, .momentum_scale = 1};
      model.update(sums(model, first, 32).gradient, 32, rate);
    }
  }

  const ModelOptions options_{.seed = 3, .momentum = 0.9};
  Dataset data_;
  std::unique_ptr<Model> host_;
  std::unique_ptr<Model> device_;
};

std::vector<float> values_of(const Parameters& parameters) {
  return {parameters.values().begin(), parameters.values().end()};
}

/// Sums of as many terms of about 1 in single precision.
void expect_near(const std::vector<float>& is, const std::vector<float>& should, double terms) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t at = 0; at < is.size(); ++at) {
    const double tolerance = 1e-6 * std::sqrt(terms) + 1e-5 * std::abs(double{should[at]});
    ASSERT_NEAR(is[at], should[at], tolerance) << "element " << at;
  }
}

TEST_F(DigitsModelTest, BeginsWithTheSameWeights) {
  EXPECT_EQ(values_of(device_->weights()), values_of(host_->weights()));
}

TEST_F(DigitsModelTest, ForwardAndBackwardAreThoseOfTheHost) {
  for (const std::size_t count : {1U, 2U, 16U, 65U, 1000U}) {
    const StepSums should = sums(*host_, 7, count);
    const StepSums is = sums(*device_, 7, count);
    EXPECT_EQ(is.used, should.used);
    EXPECT_NEAR(is.loss, should.loss, 1e-6 * static_cast<double>(count) * should.loss + 1e-6);
    expect_near(values_of(is.gradient), values_of(should.gradient), static_cast<double>(count));
  }
}

TEST_F(DigitsModelTest, PartsOfAStepAddUp) {
  StepSums unused(data_.training.size());
  const std::vector<std::size_t> first{5, 9, 1};
  const std::vector<std::size_t> second{1436, 0};
  StepSums should(data_.training.size());
  for (const auto& part : {first, second}) {
    host_->add_gradients(part, should);
    device_->add_gradients(part, unused);
  }
  EXPECT_EQ(unused.loss, 0);  // all of it stays on the device
  StepSums is(data_.training.size());
  device_->collect(is);
  EXPECT_EQ(is.used, should.used);
  expect_near(values_of(is.gradient), values_of(should.gradient), 5);
  device_->collect(is);  // of nothing
  EXPECT_EQ(is.used, should.used);
}

/// Without exp and log, host and device round alike.
TEST_F(DigitsModelTest, UpdatesAreThoseOfTheHost) {
  const StepSums given = sums(*host_, 0, 64);
  for (const double momentum_scale : {1.0, 1.5, 0.0, 1.0}) {
    const elastic::Rate rate{.base = 0.1, .gamma = 2, .momentum_scale = momentum_scale};
    host_->update(given.gradient, 48, rate);
    device_->update(given.gradient, 48, rate);
    const std::vector<float> should = values_of(host_->weights());
    const std::vector<float> is = values_of(device_->weights());
    for (std::size_t at = 0; at < is.size(); ++at) ASSERT_FLOAT_EQ(is[at], should[at]) << at;
  }
}

TEST_F(DigitsModelTest, TrainsAsTheHostDoes) {
  train(*host_, 40);
  train(*device_, 40);
  expect_near(values_of(device_->weights()), values_of(host_->weights()), 10);
}

TEST_F(DigitsModelTest, EqualTrainingsGiveEqualBits) {
  const auto other = on_device();
  train(*device_, 10);
  train(*other, 10);
  EXPECT_EQ(values_of(device_->weights()), values_of(other->weights()));
}

TEST_F(DigitsModelTest, GivesItsSumsToAllreducesWhereTheyLie) {
  const auto sums = device_->device_sums();
  ASSERT_TRUE(sums.has_value());
  EXPECT_NE(sums->stream.handle, nullptr);
  const auto like = StepSums(data_.training.size()).tensors();
  ASSERT_EQ(sums->tensors.size(), like.size());
  for (std::size_t at = 0; at < like.size(); ++at) {
    EXPECT_EQ(sums->tensors[at].count, like[at].count);
    EXPECT_EQ(sums->tensors[at].dtype, like[at].dtype);
    EXPECT_EQ(sums->tensors[at].device.kind, elastic::Device::Kind::kCuda);
  }
}

/// Weights and momentum, as a joiner or a checkpoint has them.
TEST_F(DigitsModelTest, GoesOnFromItsStateWithTheSameBits) {
  const auto file =
      std::filesystem::temp_directory_path() / ("digits_model_test_" + std::to_string(::getpid()));
  train(*device_, 5);
  elastic::State saved;
  device_->add_to(saved);
  saved.save_to(file.string());
  const auto other = on_device(/*seed=*/4);
  elastic::State loaded;
  other->add_to(loaded);
  ASSERT_TRUE(loaded.load_from(file.string()));
  std::filesystem::remove(file);
  EXPECT_EQ(values_of(other->weights()), values_of(device_->weights()));
  train(*device_, 5);
  train(*other, 5);
  EXPECT_EQ(values_of(other->weights()), values_of(device_->weights()));
}

}  // namespace
}  // namespace digits
