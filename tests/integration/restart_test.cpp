// A job of which nothing is left but its checkpoint goes on, with as many workers as there are
// then.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds kLong{60000};
constexpr int kEpochs = 10;

/// Runs of train_digits, with one checkpoint for all of them.
class Restart : public ::testing::Test {
 protected:
  std::string checkpoint() const { return (scratch_.path() / "checkpoint").string(); }

  static std::vector<std::string> command(int workers, const std::vector<std::string>& options) {
    std::vector<std::string> command{ELASTICRUN,   "-np",      std::to_string(workers),
                                     TRAIN_DIGITS, "--epochs", std::to_string(kEpochs)};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
  /// Sums are made in one way, so that the same workers give the same bits in every run.
  std::vector<std::string> environment() const {
    return {"XDG_RUNTIME_DIR=" + scratch_.path().string(), "ELASTIC_ALGORITHM=one_shot"};
  }

  /// Trains until the checkpoint has been written several times, and kills everything.
  void train_and_lose_everything(int workers) const {
    Job job(command(workers,
                    {"--checkpoint", checkpoint(), "--checkpoint-every", "7", "--step-ms", "10"}),
            scratch_.path() / "first", environment());
    std::filesystem::file_time_type written{};
    for (int times = 0; times < 3; ++times) {
      ASSERT_TRUE(eventually(kLong, [&] {
        std::error_code none;
        const auto latest = std::filesystem::last_write_time(checkpoint(), none);
        return !none && latest != std::exchange(written, latest);
      })) << job.output();
    }
    EXPECT_FALSE(job.wait(milliseconds(0)).has_value()) << "ended too early\n" << job.output();
  }  // Job kills its process group

  std::vector<nlohmann::json> reports() const {
    std::vector<nlohmann::json> result;
    for (const auto& file : std::filesystem::directory_iterator(scratch_.path())) {
      if (file.path().extension() != ".json") continue;
      result.push_back(nlohmann::json::parse(read_file(file.path())));
      std::filesystem::remove(file);
    }
    return result;
  }

  /// Trains to the end; the reports of the workers.
  std::vector<nlohmann::json> train(int workers, const std::vector<std::string>& options) const {
    std::vector<std::string> all{"--report", scratch_.path().string()};
    all.insert(all.end(), options.begin(), options.end());
    Job job(command(workers, all), scratch_.path() / "output", environment());
    EXPECT_EQ(job.wait(kLong), 0) << job.output();
    const std::vector<nlohmann::json> result = reports();
    EXPECT_EQ(result.size(), static_cast<std::size_t>(workers)) << job.output();
    return result;
  }

  /// Trains with the checkpoint where only the worker of `slot` finds it, and with one worker more
  /// as soon as `words` are in the output; the output.
  std::string train_with_the_file_at(int slot, const std::string& words) const {
    const std::string path = scratch_.path().string();
    std::filesystem::rename(checkpoint(), path + "/checkpoint." + std::to_string(slot));
    const std::string trainer = std::string("exec ") + TRAIN_DIGITS + " --epochs " +
                                std::to_string(kEpochs) + " --step-ms 25 --report " + path +
                                " --checkpoint " + path + "/checkpoint.$ELASTIC_SLOT";
    Job job({ELASTICRUN, "-np", "2", "--max-np", "3", "sh", "-c", trainer}, path + "/output.at",
            environment());
    EXPECT_TRUE(eventually(kLong, [&] {
      return job.output().find(words) != std::string::npos || job.wait(milliseconds(2)).has_value();
    }));
    Job add({ELASTICRUN, "ctl", "add", "1"}, path + "/output.ctl", environment());
    EXPECT_EQ(add.wait(kLong), 0) << add.output() << job.output();
    EXPECT_EQ(job.wait(kLong), 0) << job.output();
    return job.output();
  }

  static void expect_every_sample_once(const std::vector<nlohmann::json>& reports) {
    for (const auto& report : reports) {
      EXPECT_EQ(report["epochs"], kEpochs);
      EXPECT_EQ(report["samples_used_once"], kEpochs * report["samples_in_epoch"].get<int>());
      EXPECT_EQ(report["samples_missed"], 0);
      EXPECT_EQ(report["samples_used_twice"], 0);
      EXPECT_EQ(report["parameter_hash"], reports.front()["parameter_hash"]);
    }
  }

  ScratchFolder scratch_;
};

TEST_F(Restart, WithOtherNumbersOfWorkersUsesEverySampleOnce) {
  train_and_lose_everything(3);
  train_and_lose_everything(1);
  expect_every_sample_once(train(2, {"--checkpoint", checkpoint()}));
}

TEST_F(Restart, WithAsManyWorkersEndsWithTheSameBits) {
  const auto undisturbed = train(3, {});
  train_and_lose_everything(3);
  const auto restarted = train(3, {"--checkpoint", checkpoint()});
  expect_every_sample_once(undisturbed);
  expect_every_sample_once(restarted);
  ASSERT_FALSE(undisturbed.empty() || restarted.empty());
  EXPECT_EQ(restarted.front()["parameter_hash"], undisturbed.front()["parameter_hash"]);
  EXPECT_EQ(restarted.front()["steps"], undisturbed.front()["steps"]);
}

TEST_F(Restart, GoesByTheScheduleThatItIsGivenAndWarnsOfOptionsWithoutEffect) {
  const std::string path = scratch_.path().string();
  ASSERT_EQ(train(1, {"--checkpoint", checkpoint(), "--schedule", "cosine"}).size(), 1U);
  Job job({ELASTICRUN,   "-np",      "1",
           TRAIN_DIGITS, "--epochs", std::to_string(2 * kEpochs),
           "--schedule", "cosine",   "--lr",
           "0.02",       "--batch",  "32",
           "--rule",     "sqrt",     "--checkpoint",
           checkpoint(), "--trace",  path,
           "--report",   path},
          path + "/output.longer", environment());
  ASSERT_EQ(job.wait(kLong), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("--batch 32 has no effect: the checkpoint's 16 stays"));
  EXPECT_THAT(job.output(), HasSubstr("--rule sqrt has no effect: the checkpoint's linear stays"));
  EXPECT_THAT(job.output(), Not(HasSubstr("--seed")));
  const auto told = reports();
  ASSERT_EQ(told.size(), 1U) << job.output();
  EXPECT_EQ(told.front()["epochs"], 2 * kEpochs);
  std::vector<double> rates;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().extension() != ".jsonl") continue;
    std::istringstream trace(read_file(file.path()));
    for (std::string line; std::getline(trace, line);) {
      rates.push_back(nlohmann::json::parse(line).at("rate"));
    }
  }
  ASSERT_FALSE(rates.empty());
  EXPECT_NEAR(rates.front(), 0.01, 1e-4);  // half of the way down
  EXPECT_GT(rates.back(), 0);
}

TEST_F(Restart, AfterAStopRepeatsNoStep) {
  const auto undisturbed = train(2, {});
  ASSERT_FALSE(undisturbed.empty());
  {
    Job job(command(2, {"--checkpoint", checkpoint(), "--checkpoint-every", "1000000", "--step-ms",
                        "10", "--report", scratch_.path().string()}),
            scratch_.path() / "stopped", environment());
    ASSERT_TRUE(eventually(kLong, [&] {
      return job.output().find("epoch 1:") != std::string::npos ||
             job.wait(milliseconds(2)).has_value();
    }));
    Job stop({ELASTICRUN, "ctl", "stop"}, scratch_.path() / "output.ctl", environment());
    EXPECT_EQ(stop.wait(kLong), 0) << stop.output() << job.output();
    EXPECT_TRUE(job.wait(kLong).has_value()) << job.output();
  }
  for (const auto& report : reports()) {
    EXPECT_EQ(report["outcome"], "stopped");
    EXPECT_LT(report["steps"], undisturbed.front()["steps"]);
  }
  const auto restarted = train(2, {"--checkpoint", checkpoint()});
  ASSERT_FALSE(restarted.empty());
  EXPECT_THAT(read_file(scratch_.path() / "output"), HasSubstr("begins with step"));
  EXPECT_EQ(restarted.front()["parameter_hash"], undisturbed.front()["parameter_hash"]);
  EXPECT_EQ(restarted.front()["steps"], undisturbed.front()["steps"]);
}

TEST_F(Restart, GivesTheCheckpointOfRank0ToTheOthersAndToWhoJoins) {
  train_and_lose_everything(3);
  const std::string output = train_with_the_file_at(0, "begins with step");
  const auto told = reports();
  EXPECT_EQ(told.size(), 3U) << output;
  expect_every_sample_once(told);
}

TEST_F(Restart, WithoutTheCheckpointAtRank0BeginsAnewAndSaysSo) {
  train_and_lose_everything(3);
  const std::string output = train_with_the_file_at(1, "gave it up for the job's, which has 0");
  EXPECT_THAT(output, HasSubstr("a checkpoint is loaded where rank 0 starts"));
  expect_every_sample_once(reports());
}

TEST_F(Restart, FromADamagedCheckpointIsRefused) {
  std::ofstream(checkpoint()) << "my thesis\n";
  Job job(command(1, {"--checkpoint", checkpoint()}), scratch_.path() / "output", environment());
  EXPECT_NE(job.wait(kLong).value_or(0), 0);
  EXPECT_THAT(job.output(), HasSubstr(checkpoint() + ": is no checkpoint"));
  EXPECT_EQ(read_file(checkpoint()), "my thesis\n");
}

}  // namespace
}  // namespace elastic::testing
