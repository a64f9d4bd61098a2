// Checkpoints in real files, on a real full disk, and written by a real process that is killed.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/hash.hpp"
#include "elastic/error.hpp"
#include "elastic/learning_rate_ramp.hpp"
#include "elastic/sampler.hpp"
#include "elastic/state.hpp"
#include "integration/checkpoint_fixture.hpp"
#include "integration/job.hpp"
#include "integration/tiny_disk.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(Checkpoint, GivesBackEverything) {
  for (const std::size_t weights : {std::size_t{0}, std::size_t{5}, kLarge}) {
    Worker saved(weights);
    saved.train(7);
    saved.train(8);
    saved.state.save_to(path());
    EXPECT_TRUE(alone(scratch_.path()));
    Worker loaded(weights);
    ASSERT_TRUE(loaded.state.load_from(path()));
    EXPECT_EQ(loaded.state.commits(), 2U);
    EXPECT_EQ(loaded.weights, saved.weights);
    EXPECT_EQ(loaded.image(), saved.image());
    EXPECT_EQ(loaded.ramp.get(), saved.ramp.get());
    EXPECT_EQ(loaded.sampler.done_in_epoch(), 40U);
  }
}

TEST_F(Checkpoint, IsReplacedByTheNextAndTheSameStateGivesTheSameBytes) {
  Worker worker(kLarge);
  worker.state.save_to(path());
  const std::string first = read_file(path());
  worker.state.save_to(path());
  EXPECT_EQ(read_file(path()), first);
  worker.train(1);
  worker.state.save_to(path());
  EXPECT_NE(read_file(path()), first);
  EXPECT_TRUE(alone(scratch_.path()));
}

TEST_F(Checkpoint, HasANameWithoutZeroBytes) {
  Worker worker;
  const std::string name = path() + std::string(1, '\0') + "behind";
  const Error saved = error_of([&] { worker.state.save_to(name); });
  EXPECT_EQ(saved.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(saved.what(), HasSubstr("has a zero byte in it"));
  const Error loaded = error_of([&] { (void)worker.state.load_from(name); });
  EXPECT_EQ(loaded.code(), ErrorCode::kInvalidArgument);
}

TEST_F(Checkpoint, OfTheFormatBeforeIsReadAndReplaced) {
  constexpr std::size_t kOldPreamble = 40;
  constexpr std::size_t kPreamble = 64;
  constexpr std::size_t kLayoutBytesAt = 24;
  constexpr std::size_t kNewInImage = 32;  // two numbers
  Worker saved;
  saved.train(7);
  saved.state.save_to(path());
  std::string old = read_file(path());
  std::uint64_t layout = 0;
  std::memcpy(&layout, old.data() + kLayoutBytesAt, sizeof(layout));
  std::memset(old.data() + kPreamble + layout + kNewInImage, 0, 2 * sizeof(std::uint64_t));
  old.erase(kOldPreamble, kPreamble - kOldPreamble);
  const std::uint64_t header[] = {1, old.size()};  // version, length
  std::memcpy(old.data() + kVersionAt, header, sizeof(header));
  const std::uint64_t hash =
      hash_of(std::as_bytes(std::span(old)).first(old.size() - sizeof(std::uint64_t)));
  std::memcpy(old.data() + old.size() - sizeof(hash), &hash, sizeof(hash));
  write(old);
  Worker loaded;
  ASSERT_TRUE(loaded.state.load_from(path()));
  EXPECT_EQ(loaded.weights, saved.weights);
  EXPECT_EQ(loaded.state.commits(), 1U);
  saved.state.save_to(path());
  EXPECT_EQ(read_file(path())[kVersionAt], 2);
}

TEST_F(Checkpoint, ThatIsNotThereIsNoError) {
  Worker worker;
  EXPECT_FALSE(worker.state.load_from(path()));
}

TEST_F(Checkpoint, WhoseFolderIsMissingIsAnError) {
  Worker worker;
  Error error = error_of([&] { worker.state.load_from(path("no folder/checkpoint")); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("no folder/checkpoint does not exist; check the path"));
  std::filesystem::create_symlink("unmounted/checkpoint", path("link"));
  error = error_of([&] { worker.state.load_from(path("link")); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("link is a symbolic link to nothing"));
}

TEST_F(Checkpoint, IsLoadedOnlyBeforeTheTrainingAndSavedInIt) {
  Worker worker;
  struct : training::Boundary {
    void commit(State& /*state*/) override {}
  } boundary;
  const training::Attachment attachment(worker.state, boundary);
  worker.state.save_to(path());
  const Error error = error_of([&] { worker.state.load_from(path()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("inside elastic::run"));
}

TEST_F(Checkpoint, WithAnyBitFlippedIsRefused) {
  Worker saved;
  saved.train(7);
  saved.state.save_to(path());
  const std::string good = read_file(path());
  ASSERT_LT(good.size(), 4096U);
  Worker worker;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      write(bad);
      EXPECT_EQ(refusal(worker).code(), ErrorCode::kInvalidArgument) << "byte " << at;
      if (HasFailure()) return;
    }
  }
}

TEST_F(Checkpoint, WithABitFlippedInALargeEntryIsRefused) {
  Worker saved(kLarge);
  saved.train(7);
  saved.state.save_to(path());
  std::string bad = read_file(path());
  bad[bad.size() - kLarge] ^= '\x10';
  write(bad);
  Worker worker(kLarge);
  EXPECT_THAT(refusal(worker).what(), HasSubstr("its checksum is wrong"));
}

TEST_F(Checkpoint, CutOrLongerIsRefused) {
  Worker saved;
  saved.train(7);
  saved.state.save_to(path());
  const std::string good = read_file(path());
  Worker worker;
  for (std::size_t size = 0; size < good.size() && !HasFailure(); ++size) {
    write(good.substr(0, size));
    EXPECT_EQ(refusal(worker).code(), ErrorCode::kInvalidArgument) << size << " bytes";
  }
  write(good + '\0');
  EXPECT_THAT(refusal(worker).what(), HasSubstr("was written with"));
}

TEST_F(Checkpoint, OfAnotherModelIsRefusedWithTheDifference) {
  Worker saved(kLarge);
  saved.state.save_to(path());
  Worker smaller(kLarge - 1);
  EXPECT_THAT(refusal(smaller).what(),
              HasSubstr("state entry 'weights': the file has f32 x " + std::to_string(kLarge) +
                        ", this worker f32 x " + std::to_string(kLarge - 1)));
  Worker more(kLarge);
  double extra = 0;
  more.state.add("extra", extra);
  EXPECT_THAT(refusal(more).what(), HasSubstr("'extra': the file does not have it"));
}

TEST_F(Checkpoint, WhoseObjectsAreOfOtherDataIsRefused) {
  Sampler sampler(100, 1);
  State saved;
  saved.add("sampler", sampler);
  saved.save_to(path());
  Sampler of_more(101, 1);
  State state;
  state.add("sampler", of_more);
  const Error error = error_of([&] { state.load_from(path()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr(path() + ": state entry 'sampler'"));
}

/// Takes what it saved, once.
struct Stubborn {
  bool saves = true;
  int loads = 0;
  std::vector<std::byte> save() const {
    if (!saves) throw std::runtime_error("will not save");
    return {std::byte{1}};
  }
  void load(std::span<const std::byte> /*bytes*/) {
    if (++loads > 1) throw std::runtime_error("will not load again");
  }
};

TEST_F(Checkpoint, ThatLeavesTheStateBrokenIsAnInternalErrorAndNothingElseIs) {
  Stubborn first;
  Stubborn last;
  State state;
  state.add("first", first);
  state.add("last", last);
  state.save_to(path());
  last.saves = false;
  EXPECT_THROW(state.load_from(path()), std::runtime_error);
  EXPECT_EQ(first.loads, 0) << "nothing was loaded before all were saved";
  last = {.saves = true, .loads = 1};
  const Error error = error_of([&] { state.load_from(path()); });
  EXPECT_EQ(error.code(), ErrorCode::kInternal) << "the first cannot be taken back";
  EXPECT_THAT(error.what(), HasSubstr("state entry 'last': will not load again; and then"));
}

TEST_F(Checkpoint, OfAnotherVersionIsRefused) {
  Worker worker;
  worker.state.save_to(path());
  std::string content = read_file(path());
  content[kVersionAt] = 3;
  write(content);
  EXPECT_THAT(refusal(worker).what(), HasSubstr("is of format 3, and this library reads 1 and 2"));
}

TEST_F(Checkpoint, ThatIsSomethingElseIsRefused) {
  Worker worker;
  for (const std::string& content : {std::string("my thesis\n"), std::string(100000, 'x')}) {
    write(content);
    EXPECT_THAT(refusal(worker).what(), HasSubstr("is no checkpoint"));
  }
  for (const std::string& other : {scratch_.path().string(), std::string("/dev/null")}) {
    const Error error = error_of([&] { worker.state.load_from(other); });
    EXPECT_THAT(error.what(), HasSubstr(other + ": is no regular file"));
  }
}

TEST_F(Checkpoint, WhereNothingCanBeWrittenIsAnError) {
  const Worker worker;
  const auto refused = [&](const std::string& to) {
    return error_of([&] { worker.state.save_to(to); });
  };
  EXPECT_THAT(refused(path("none/checkpoint")).what(), HasSubstr("No such file"));
  EXPECT_EQ(refused(path("none/checkpoint")).code(), ErrorCode::kUnavailable);
  EXPECT_THAT(refused(scratch_.path().string()).what(),
              HasSubstr("is a folder; give a file's name"));
  EXPECT_EQ(refused("").code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused("").what(), HasSubstr("the file's name is empty"));
  EXPECT_THAT(refused(path("none/")).what(), HasSubstr("ends in '/'; give a file's name"));
  // Not even root may write there.
  EXPECT_THAT(refused("/proc/elastic-checkpoint").what(),
              HasSubstr("/proc/elastic-checkpoint: No such file"));
}

TEST_F(Checkpoint, OnAFullDiskTheOldOneStays) {
  TinyDisk disk(std::size_t{1} << 20);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string path = (disk.path() / "checkpoint").string();
  Worker worker(kLarge);
  worker.train(1);
  worker.state.save_to(path);
  const std::string old = read_file(path);
  disk.fill();
  worker.train(2);
  const Error error = error_of([&] { worker.state.save_to(path); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr(path + ": No space left on device; make room"));
  EXPECT_EQ(read_file(path), old);
  EXPECT_EQ(unfinished(disk.path()), "");
  disk.make_room();
  worker.state.save_to(path);
  EXPECT_NE(read_file(path), old);
}

/// Saves one state after another, until it is killed.
[[noreturn]] void save_for_ever(const std::string& path) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Worker worker(std::size_t{1} << 20);
  for (std::int64_t step = 1;; ++step) {
    worker.train(step);
    worker.state.save_to(path);
  }
}

TEST_F(Checkpoint, WhoseWriterIsKilledIsTheOldOneAndTheNextWriterGoesOn) {
  for (int kill = 0; kill < 5; ++kill) {
    const pid_t writer = ::fork();
    if (writer == 0) save_for_ever(path());
    std::error_code gone;
    EXPECT_TRUE(eventually(std::chrono::seconds(20), [&] {
      return std::filesystem::exists(path()) &&
             std::filesystem::file_size(unfinished(scratch_.path()), gone) + 1 > std::uintmax_t{1}
                                                                                     << 20;
    }));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    Worker worker(std::size_t{1} << 20);
    ASSERT_TRUE(worker.state.load_from(path()));
    EXPECT_EQ(worker.counts[1], static_cast<std::int64_t>(worker.state.commits()));
    EXPECT_EQ(worker.weights[1], static_cast<float>(worker.counts[1] + 1));
  }
  Worker next;
  next.state.save_to(path());
  EXPECT_TRUE(alone(scratch_.path()));
}

}  // namespace
}  // namespace elastic::testing
