#include "rendezvous/protocol/connection_file.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::rendezvous {
namespace {

using std::filesystem::perms;
using ::testing::HasSubstr;

class ConnectionFileTest : public ::testing::Test {
 protected:
  std::string refusal() const {
    const auto read = read_connection_file(path_);
    EXPECT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(read.status().message(), HasSubstr(path_));
    return read.status().message();
  }

  const testing::ScratchFolder scratch_;
  const std::string path_ = (scratch_.path() / "connection.json").string();
  const JobContact contact_{"mine", "node0:4711", random_secret(), true};
};

TEST_F(ConnectionFileTest, IsForItsOwnerAloneAndReadAsWritten) {
  ASSERT_TRUE(write_connection_file(path_, contact_).ok());
  EXPECT_EQ(std::filesystem::status(path_).permissions(), perms::owner_read | perms::owner_write);
  const auto read = read_connection_file(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().job, "mine");
  EXPECT_EQ(read.value().address, "node0:4711");
  EXPECT_TRUE(read.value().secret == contact_.secret);
  EXPECT_TRUE(read.value().encrypt);
}

TEST_F(ConnectionFileTest, IsUnavailableUntilItIsThere) {
  EXPECT_EQ(read_connection_file(path_).status().code(), Code::kUnavailable);
  {
    const auto file = ConnectionFile::create(path_, contact_);
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(read_connection_file(path_).ok());
  }
  EXPECT_EQ(read_connection_file(path_).status().code(), Code::kUnavailable);
}

TEST_F(ConnectionFileTest, OthersMustNotBeAbleToReadIt) {
  ASSERT_TRUE(write_connection_file(path_, contact_).ok());
  std::filesystem::permissions(path_, perms::group_read, std::filesystem::perm_options::add);
  EXPECT_THAT(refusal(), HasSubstr("chmod 600"));
}

TEST_F(ConnectionFileTest, MustBelongToTheUser) {
  if (::getuid() != 0) GTEST_SKIP() << "making a file of another user needs root";
  ASSERT_TRUE(write_connection_file(path_, contact_).ok());
  ASSERT_EQ(::chown(path_.c_str(), 1234, 1234), 0);
  EXPECT_THAT(refusal(), HasSubstr("user 1234"));
}

TEST_F(ConnectionFileTest, ALinkIsNotFollowed) {
  ASSERT_TRUE(write_connection_file(path_ + ".other", contact_).ok());
  std::filesystem::create_symlink(path_ + ".other", path_);
  refusal();
}

TEST_F(ConnectionFileTest, OfAnotherKindIsNamed) {
  for (const char* text : {"", "{}", "x", R"({"job":"a","secret":"12"})"}) {
    std::ofstream(path_) << text;
    std::filesystem::permissions(path_, perms::owner_read | perms::owner_write);
    refusal();
  }
}

TEST(AddressForOthers, IsTheHostsOfAServerThatListensEverywhere) {
  EXPECT_EQ(address_for_others("10.0.0.1:80", "10.0.0.9"), "10.0.0.1:80");
  EXPECT_EQ(address_for_others("0.0.0.0:80", "10.0.0.9"), "10.0.0.9:80");
  EXPECT_EQ(address_for_others("[::]:80", "[fd00::1]"), "[fd00::1]:80");
  EXPECT_THAT(address_for_others("0.0.0.0:80", ""), ::testing::Not(HasSubstr("0.0.0.0")));
}

}  // namespace
}  // namespace elastic::rendezvous
