#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/trainer_job.hpp"
#include "tests/eventually.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {

/// A training under elasticrun, whose server other launchers reach, each as on a host of its own.
class SeveralLaunchersTest : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kTimeLimit =
      std::chrono::milliseconds(30000) * kHangFactor;

  SeveralLaunchersTest() { write_secret(secret_, '7'); }

  void start(const std::vector<std::string>& options) {
    std::vector<std::string> command = {"--secret-file", secret_.string()};
    command.insert(command.end(), options.begin(), options.end());
    job_ = std::make_unique<TrainerJob>(command);
  }
  std::vector<std::string> trainer() const { return {ELASTIC_TRAINER, job_->folder().string()}; }
  /// Starts another launcher, for the job's trainer.
  std::unique_ptr<Job> join(const std::vector<std::string>& options) {
    return join(options, trainer());
  }
  std::unique_ptr<Job> join(const std::vector<std::string>& options,
                            const std::vector<std::string>& program) {
    std::vector<std::string> command = {ELASTICRUN, "--join", address(), "--secret-file",
                                        secret_.string()};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), program.begin(), program.end());
    return std::make_unique<Job>(command,
                                 scratch_.path() / ("output-" + std::to_string(++joined_)));
  }
  std::string address() const {
    std::string told = job_->address();
    while (!told.empty() && told.back() == '\n') told.pop_back();
    return told;
  }
  nlohmann::json status() {
    std::string text;
    EXPECT_TRUE(job_->control({"status", "--json"}, &text)) << text;
    return nlohmann::json::parse(text);
  }
  bool add(int count, std::string* said = nullptr) {
    return job_->control({"add", std::to_string(count)}, said);
  }
  bool has_members(std::size_t count) {
    return eventually(kTimeLimit, [&] { return status()["world_size"] == count; });
  }
  std::vector<std::string> slots() {
    std::vector<std::string> found;
    const nlohmann::json now = status();
    for (const auto& member : now["members"]) found.push_back(member["slot"]);
    return found;
  }

  const ScratchFolder scratch_;
  const std::filesystem::path secret_ = scratch_.path() / "secret";
  std::unique_ptr<TrainerJob> job_;
  int joined_ = 0;
};

}  // namespace elastic::testing
