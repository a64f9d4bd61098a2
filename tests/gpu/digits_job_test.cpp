// train_digits on CUDA devices, which its workers share: through a death and a join, next to a
// training on the host of the same batches.
#include "integration/digits_job.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/driver_calls.hpp"
#include "integration/digits_checks.hpp"

namespace elastic::testing {
namespace {

class DigitsOnDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Gpu::devices() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

class DigitsOfOneBatch : public DigitsOnDevices, public ::testing::WithParamInterface<std::string> {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::vector<std::string> arguments(const std::string& device) const {
    return {"--device", device,    "--weights", file(device), "--batch-policy",
            GetParam(), "--batch", "48",        "--epochs",   "4"};
  }
  std::vector<float> weights(const std::string& device) const {
    const std::string bytes = read_file(file(device));
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }

 private:
  ScratchFolder folder_;
};

/// Three workers, of which one dies, and one that joins.
void train_disturbed(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--step-ms", "20", "--die-rank", "1", "--die-at-step", "5"});
  DigitsJob job({"-np", "3", "--min-np", "2", "--max-np", "4", "--max-restarts", "0"}, arguments);
  expect_equal_weights_through_a_death_and_a_join(job);
}

TEST_P(DigitsOfOneBatch, TrainThroughADeathAndAJoinAsOnTheHost) {
  DigitsJob on_host({"-np", "1"}, arguments("host"));
  ASSERT_EQ(on_host.finish(), 0) << on_host.output();

  train_disturbed(arguments("cuda"));
  if (HasFatalFailure()) return;
  const std::vector<float> is = weights("cuda");
  const std::vector<float> should = weights("host");
  ASSERT_EQ(is.size(), should.size());
  ASSERT_GT(is.size(), 4000U);
  for (std::size_t at = 0; at < is.size(); ++at) {
    ASSERT_NEAR(is[at], should[at], 1e-5) << "parameter " << at;
  }
}

// Sums of device tensors, and of parts that come to the host.
INSTANTIATE_TEST_SUITE_P(Policies, DigitsOfOneBatch,
                         ::testing::Values("fixed_total", "reproducible"),
                         [](const auto& param) { return param.param; });

/// A batch for each worker, as the demo has it.
TEST_F(DigitsOnDevices, ReplicasAgreeThroughADeathAndAJoin) {
  train_disturbed({"--device", "cuda", "--epochs", "4"});
}

}  // namespace
}  // namespace elastic::testing
