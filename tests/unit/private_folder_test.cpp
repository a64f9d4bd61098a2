#include "rendezvous/launcher/private_folder.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace elastic::launcher {
namespace {

constexpr uid_t kOtherUser = 12345;

class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    std::string pattern = testing::TempDir() + "private-XXXXXX";
    parent_ = ::mkdtemp(pattern.data());
  }
  ~PrivateFolderTest() override { std::filesystem::remove_all(parent_); }

  std::string usual() const { return parent_ + "/elastic-" + std::to_string(::getuid()); }
  Result<std::string> found() const { return private_folder({{"XDG_RUNTIME_DIR", parent_}}); }
  void make_for_other_user(const std::string& path) const {
    ASSERT_EQ(::mkdir(path.c_str(), 0777), 0);
    ASSERT_EQ(::chown(path.c_str(), kOtherUser, kOtherUser), 0);
  }

  std::string parent_;
};

TEST_F(PrivateFolderTest, IsNamedAfterTheUser) {
  EXPECT_EQ(found().value(), usual());
  EXPECT_EQ(found().value(), usual());
}

TEST_F(PrivateFolderTest, OfAnotherUserIsLeftForAnotherName) {
  if (::getuid() != 0) GTEST_SKIP() << "making a folder for another user needs root";
  make_for_other_user(usual());
  make_for_other_user(usual() + "-1");
  EXPECT_EQ(found().value(), usual() + "-2");
  EXPECT_EQ(found().value(), usual() + "-2") << "every process has to find the same";
  std::filesystem::remove(usual());
  EXPECT_EQ(found().value(), usual() + "-2") << "the job's files are there";
}

TEST_F(PrivateFolderTest, ALinkOfAnotherUserIsNotFollowed) {
  if (::getuid() != 0) GTEST_SKIP() << "making a link for another user needs root";
  const std::string target = parent_ + "/target";
  ASSERT_EQ(::mkdir(target.c_str(), 0700), 0);
  ASSERT_EQ(::symlink(target.c_str(), usual().c_str()), 0);
  ASSERT_EQ(::lchown(usual().c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(found().value(), usual() + "-1");
}

TEST_F(PrivateFolderTest, OfOursThatOthersCanEnterIsNamed) {
  ASSERT_EQ(::mkdir(usual().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(usual().c_str(), 0755), 0);
  const Status refused = found().status();
  EXPECT_EQ(refused.code(), Code::kRefused);
  EXPECT_NE(refused.message().find(usual()), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace elastic::launcher
