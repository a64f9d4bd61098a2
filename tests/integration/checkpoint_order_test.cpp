// Which of two checkpoints in one place stays.
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "base/unique_fd.hpp"
#include "integration/checkpoint_fixture.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(Checkpoint, IsNotReplacedByAnOlderOneOfTheSameTraining) {
  Worker first;
  first.train(1, 3);
  first.state.save_to(path("start"));
  Worker stale;
  ASSERT_TRUE(stale.state.load_from(path("start")));
  first.train(2, 3);
  first.state.save_to(path());
  const std::string newer = read_file(path());
  const Error error = error_of([&] { stale.state.save_to(path()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr(path() + " is newer, of 2 commits in generation 3, than this "
                                               "worker's state, of 1 commits in generation 3"));
  EXPECT_EQ(read_file(path()), newer);
  EXPECT_TRUE(unfinished(scratch_.path()).empty());
  first.state.save_to(path());
  first.train(3, 3);
  first.state.save_to(path());
}

TEST_F(Checkpoint, OfAnEarlierGenerationIsOlderWhateverItsCommits) {
  Worker member;
  member.train(1, 3);
  member.state.save_to(path("start"));
  Worker given_up;
  ASSERT_TRUE(given_up.state.load_from(path("start")));
  given_up.train(2, 1);  // generation 4 of the training
  given_up.train(3, 1);
  Worker goes_on;
  ASSERT_TRUE(goes_on.state.load_from(path("start")));
  goes_on.train(2, 2);
  goes_on.state.save_to(path());
  EXPECT_THAT(error_of([&] { given_up.state.save_to(path()); }).what(),
              HasSubstr("is newer, of 2 commits in generation 5, than this worker's state, of 3 "
                        "commits in generation 4"));
  // A job that goes on from the file has generations from 1 again.
  Worker restarted;
  ASSERT_TRUE(restarted.state.load_from(path()));
  restarted.train(3, 1);
  restarted.state.save_to(path());
}

/// The view changes of a job that went back make its generation greater than that of the file.
TEST_F(Checkpoint, ThatAJobWentBackBehindStaysUntilItIsMovedAway) {
  Worker first;
  first.train(1, 3);
  first.state.save_to(path("older"));
  first.train(2, 3);
  first.state.save_to(path());
  const std::string newer = read_file(path());
  Worker back;
  ASSERT_TRUE(back.state.load_from(path("older")));
  for (const std::uint64_t generation : {1U, 2U, 3U}) {
    back.train(2, generation);
    const Error error = error_of([&] { back.state.save_to(path()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(),
                HasSubstr("is of 2 commits in generation 3, and this job went on from "
                          "an older checkpoint of the same training"));
    EXPECT_THAT(error.what(), HasSubstr("move that file away, or save under another name"));
    EXPECT_EQ(read_file(path()), newer) << generation;
    back.state.save_to(path("older"));  // what it has begun with
  }
  std::filesystem::rename(path(), path("left behind"));
  back.state.save_to(path());
  // A worker of the job that was left does not replace the file, though it has more commits.
  for (std::int64_t step = 3; step < 9; ++step) first.train(step, 9);
  EXPECT_EQ(error_of([&] { first.state.save_to(path()); }).code(), ErrorCode::kUnavailable);
}

/// A branch that was restarted has more generations than a longer one, and fewer commits.
TEST_F(Checkpoint, OfALongerBranchStaysHoweverOftenAnotherWasRestarted) {
  Worker first;
  first.train(1, 1);
  first.state.save_to(path("side"));
  Worker longer;
  ASSERT_TRUE(longer.state.load_from(path("side")));
  for (std::int64_t step = 2; step < 9; ++step) longer.train(step, 1);
  longer.state.save_to(path());
  const std::string kept = read_file(path());
  for (std::int64_t step = 2; step < 6; ++step) {
    Worker restarted;
    ASSERT_TRUE(restarted.state.load_from(path("side")));
    restarted.train(step, 1);
    EXPECT_EQ(error_of([&] { restarted.state.save_to(path()); }).code(), ErrorCode::kUnavailable);
    EXPECT_EQ(read_file(path()), kept) << step;
    restarted.state.save_to(path("side"));
  }
}

/// Another worker's file comes when a save has looked at the one before, and has written its own.
class CheckpointOfTwo : public Checkpoint {
 protected:
  /// The error of the save, if it fails.
  std::optional<ErrorCode> save_while_comes(Worker& worker, const std::string& other) {
    const std::uintmax_t whole = std::filesystem::file_size(path());
    const UniqueFd folder(::open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_EQ(::flock(folder.get(), LOCK_EX), 0);  // for which a save waits in the end
    std::optional<ErrorCode> failure;
    std::thread saving([&] {
      try {
        worker.state.save_to(path());
      } catch (const Error& error) {
        failure = error.code();
      }
    });
    EXPECT_TRUE(eventually(std::chrono::milliseconds(5000), [&] {
      const std::filesystem::path file = unfinished(scratch_.path());
      return !file.empty() && std::filesystem::file_size(file) == whole;
    }));
    std::filesystem::rename(other, path());
    ::flock(folder.get(), LOCK_UN);
    saving.join();
    return failure;
  }
};

TEST_F(CheckpointOfTwo, ReplacesAnOlderOneThatCameMeanwhile) {
  Worker worker;
  worker.train(1, 1);
  worker.state.save_to(path("older"));
  worker.state.save_to(path());
  worker.train(2, 2);
  EXPECT_EQ(save_while_comes(worker, path("older")), std::nullopt);
  Worker loaded;
  ASSERT_TRUE(loaded.state.load_from(path()));
  EXPECT_EQ(loaded.state.commits(), 2U);
}

TEST_F(CheckpointOfTwo, LeavesANewerOneThatCameMeanwhile) {
  Worker worker;
  worker.train(1, 1);
  const training::Image given_up = worker.image();
  worker.state.save_to(path());
  worker.train(2, 2);
  worker.state.save_to(path("newer"));
  Worker stale;
  EXPECT_TRUE(training::restore_all_but_large(stale.state, given_up).ok());
  const View view(1);
  const training::Attachment attachment(stale.state, *view.boundary);
  EXPECT_EQ(save_while_comes(stale, path("newer")), ErrorCode::kEvicted);
  Worker loaded;
  ASSERT_TRUE(loaded.state.load_from(path()));
  EXPECT_EQ(loaded.state.commits(), 2U);
}

TEST_F(CheckpointOfTwo, LeavesOneOfAnotherTrainingThatCameMeanwhile) {
  Worker worker;
  worker.train(1, 1);
  worker.state.save_to(path());
  Worker other;
  other.train(1, 1);
  other.state.save_to(path("other"));
  const std::string theirs = read_file(path("other"));
  EXPECT_EQ(save_while_comes(worker, path("other")), ErrorCode::kUnavailable);
  EXPECT_EQ(read_file(path()), theirs);
}

TEST_F(Checkpoint, OfAnotherTrainingIsReplaced) {
  Worker before;
  before.train(1, 9);
  before.train(2, 9);
  before.state.save_to(path());
  Worker other;
  other.train(1, 1);
  other.state.save_to(path());
  Worker loaded;
  ASSERT_TRUE(loaded.state.load_from(path()));
  EXPECT_EQ(loaded.state.commits(), 1U);
}

TEST_F(Checkpoint, IsNotSavedByAWorkerThatWasGivenUp) {
  Worker worker;
  worker.train(1);
  worker.state.save_to(path());
  const std::string before = read_file(path());
  const View view(2);
  const training::Attachment attachment(worker.state, *view.boundary);
  worker.state.commit();
  view.boundary->given_up = true;
  EXPECT_EQ(error_of([&] { worker.state.save_to(path()); }).code(), ErrorCode::kEvicted);
  EXPECT_EQ(read_file(path()), before);
}

/// The file of a later view may be there before the news of that view.
TEST_F(Checkpoint, IsNotSavedByAWorkerThatWillHearThatItWasGivenUp) {
  Worker goes_on;
  goes_on.train(1, 1);
  const training::Image both = goes_on.image();
  goes_on.train(2, 2);
  goes_on.train(3, 2);
  goes_on.state.save_to(path());
  const std::string newer = read_file(path());
  const auto save_in_generation = [&](std::uint64_t generation, bool news_comes) {
    Worker given_up;
    EXPECT_TRUE(training::restore_all_but_large(given_up.state, both).ok());
    const View view(generation);
    view.boundary->news_comes = news_comes;
    const training::Attachment attachment(given_up.state, *view.boundary);
    given_up.state.commit();
    const ErrorCode code = error_of([&] { given_up.state.save_to(path()); }).code();
    return std::pair(code, view.boundary->waits);
  };
  EXPECT_EQ(save_in_generation(1, true), std::pair(ErrorCode::kEvicted, 1));
  EXPECT_EQ(save_in_generation(1, false), std::pair(ErrorCode::kUnavailable, 1));
  EXPECT_EQ(save_in_generation(2, true), std::pair(ErrorCode::kUnavailable, 0))
      << "a worker that is a step behind is still a member";
  EXPECT_EQ(read_file(path()), newer);
}

}  // namespace
}  // namespace elastic::testing
