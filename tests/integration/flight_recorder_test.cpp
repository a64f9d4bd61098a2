// The latest operations of workers, which a real job writes down: on request, in a stall, and in an
// error.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "integration/launched_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr milliseconds kDeadline = milliseconds(60000) * kHangFactor;

class FlightRecorderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkfifo(pipe().c_str(), 0600), 0); }

  std::string pipe() const { return (job_.folder() / "pipe").string(); }
  std::filesystem::path folder() const { return job_.folder() / "flight"; }
  void start(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    std::vector<std::string> command{"-np", "2",         "--min-np", "1", "--max-restarts",
                                     "0",   TRACED_STEPS};
    command.insert(command.end(), arguments.begin(), arguments.end());
    environment.push_back("ELASTIC_FLIGHT_RECORDER=" + folder().string());
    job_.start(command, std::move(environment));
  }
  /// The files that the workers have written so far, by rank.
  std::vector<nlohmann::json> files() const {
    std::vector<nlohmann::json> found;
    if (!std::filesystem::exists(folder())) return found;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      if (entry.path().extension() != ".json") continue;
      found.push_back(nlohmann::json::parse(read_file(entry.path())));
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.at("rank") < b.at("rank"); });
    return found;
  }
  bool come(std::size_t count) const {
    return eventually(kDeadline, [&] { return files().size() == count; });
  }
  void let_rank_0_go_on() const { const std::ofstream opened(pipe()); }

  LaunchedJob job_;
};

TEST_F(FlightRecorderTest, IsWrittenOnRequestWhileTheJobGoesOn) {
  start({"20", "10", pipe()});
  // Rank 0 waits at the end of step 10, rank 1 in the commit or in step 11. The request is repeated
  // until they have come there, for there is no event that tells this process of it.
  const auto has_come = [&] {
    std::string answer;
    if (!job_.control({"dump"}, &answer)) return false;
    EXPECT_THAT(answer, HasSubstr("workers for their latest operations"));
    const auto found = files();
    return found.size() == 2 &&
           found[0].at("lanes")[0].at("position") >= 43;  // three of them made the state the same
  };
  ASSERT_TRUE(eventually(kDeadline, has_come)) << job_.output();
  for (const auto& file : files()) {
    EXPECT_EQ(file.at("members"), 2);
    EXPECT_EQ(file.at("reason"), "elasticrun ctl dump");
    ASSERT_THAT(file.at("lanes"), SizeIs(2));
    EXPECT_EQ(file.at("lanes")[1].at("operations")[0].at("first"), "weights");
  }
  const auto rank_0 = files()[0].at("lanes")[0];
  const auto& last = rank_0.at("operations").back();
  EXPECT_EQ(last.at("call"), "barrier");
  EXPECT_EQ(last.at("state"), "done");
  EXPECT_GE(last.at("ended_us"), last.at("began_us"));
  std::size_t small = 0;
  for (const auto& operation : rank_0.at("operations")) small += operation.contains("small");
  EXPECT_GE(small, 10U);
  let_rank_0_go_on();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
  EXPECT_THAT(job_.output(), HasSubstr("wrote the latest operations to " + folder().string()));
}

TEST_F(FlightRecorderTest, AStallWritesItOnAllMembers) {
  start({"20", "10", pipe()}, {"ELASTIC_STALL_WARNING_MS=100"});
  ASSERT_TRUE(come(2)) << job_.output();
  const auto found = files();
  for (const auto& file : found) {
    EXPECT_THAT(file.at("reason").get<std::string>(), HasSubstr("rank 0 has not entered"));
  }
  // Both were submitted, and wait for rank 0: this is the first by name.
  EXPECT_EQ(found[1].at("first_tensor_under_way"), "bias \"quoted\"");
  let_rank_0_go_on();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
}

/// Every program that may write to the folder can make one where the next file is written.
TEST_F(FlightRecorderTest, IsWrittenInThePlaceOfAFifo) {
  start({"20", "10", pipe()}, {"ELASTIC_STALL_WARNING_MS=100"});
  ASSERT_TRUE(come(2)) << job_.output();
  std::vector<std::string> written;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".json") written.push_back(entry.path().string());
  }
  for (const std::string& path : written) {
    ASSERT_EQ(::mkfifo((path + ".new").c_str(), 0600), 0);
    std::filesystem::remove(path);
  }
  ASSERT_TRUE(job_.control({"dump"})) << job_.output();
  EXPECT_TRUE(come(2)) << job_.output();
  let_rank_0_go_on();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
}

TEST_F(FlightRecorderTest, AJobThatFailsWritesIt) {
  start({"20", "10", pipe()}, {"ELASTIC_STALL_TIMEOUT_MS=300"});
  ASSERT_TRUE(come(2)) << job_.output();
  let_rank_0_go_on();
  EXPECT_NE(job_.launcher().wait(kDeadline), 0) << job_.output();
  EXPECT_THAT(files()[0].at("reason").get<std::string>(), HasSubstr("ELASTIC_STALL_TIMEOUT_MS"));
}

TEST_F(FlightRecorderTest, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  job_.start({"-np", "1", "--max-restarts", "0", TRACED_STEPS, "1"},
             {"ELASTIC_FLIGHT_RECORDER=/no/such/folder"});
  EXPECT_NE(job_.launcher().wait(kDeadline), 0);
  EXPECT_THAT(job_.output(),
              HasSubstr("cannot write the latest operations to the folder /no/such/folder: "));
}

}  // namespace
}  // namespace elastic::testing
