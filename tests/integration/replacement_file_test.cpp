// A file that is replaced atomically: by writers that live, are stopped or are dead, and through
// links.
#include "base/replacement_file.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

class Replacement : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "file") const {
    return (scratch_.path() / name).string();
  }
  /// Begins one, and does not finish it.
  static ReplacementFile begin(const std::string& path, const std::string& content) {
    Result<ReplacementFile> file = ReplacementFile::create(path);
    if (!file.ok()) throw std::runtime_error(file.status().message());
    EXPECT_TRUE(file.value().write(std::as_bytes(std::span(content))).ok());
    return std::move(file.value());
  }
  static void replace(const std::string& path, const std::string& content) {
    const Status status = begin(path, content).commit();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  static std::ptrdiff_t files_in(const std::filesystem::path& folder) {
    const std::filesystem::directory_iterator files(folder);
    return std::distance(std::filesystem::begin(files), std::filesystem::end(files));
  }

  ScratchFolder scratch_;
};

TEST_F(Replacement, GoesOnBesideAStuckWriterWhichThenReplacesNothing) {
  replace(path(), "old");
  ReplacementFile stuck = begin(path(), "older");
  replace(path(), "new");
  EXPECT_EQ(files_in(scratch_.path()), 2) << "the stuck writer lives";
  const Status late = stuck.commit();
  EXPECT_EQ(late.code(), Code::kUnavailable);
  EXPECT_THAT(late.message(), HasSubstr("was replaced by another writer"));
  EXPECT_EQ(read_file(path()), "new");
}

TEST_F(Replacement, RemovesWhatDeadWritersLeftAndNothingElse) {
  const std::string left = path("file.17-4.new");
  const int other = ::open(left.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  for (const char* name : {"file.new", "file.a-4.new", "file.17-4.news", "another.17-4.new"}) {
    std::ofstream(path(name)) << "not ours";
  }
  replace(path(), "first");
  EXPECT_TRUE(std::filesystem::exists(left)) << "its writer lives";
  ::close(other);
  replace(path(), "second");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(files_in(scratch_.path()), 5);
}

TEST_F(Replacement, LeavesNothingWhereItIsGivenUp) {
  begin(path(), "unfinished");
  EXPECT_EQ(files_in(scratch_.path()), 0);
}

TEST_F(Replacement, KeepsLinksAndPermissions) {
  const std::filesystem::path disk = path("disk");
  std::filesystem::create_directory(disk);
  std::filesystem::create_symlink("disk/file", path("link"));
  std::filesystem::create_symlink(path("link"), path("link to link"));
  replace(path("link to link"), "first");
  constexpr auto kMine = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(disk / "file", kMine);
  replace(path("link to link"), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_file(disk / "file"), "second");
  EXPECT_EQ(std::filesystem::status(disk / "file").permissions(), kMine);
  EXPECT_EQ(files_in(disk), 1);
}

TEST_F(Replacement, ReplacesNothingButFiles) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("circle", path("circle"));
  for (const char* name : {"pipe", "circle", "."}) {
    const Status refused = ReplacementFile::create(path(name)).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << name;
    EXPECT_THAT(refused.message(), HasSubstr(path(name)));
  }
}

}  // namespace
}  // namespace elastic::testing
