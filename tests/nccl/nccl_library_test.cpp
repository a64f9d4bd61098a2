// Which libnccl is taken, and what is said of the others.
#include "collectives/backend/nccl/nccl_library.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::collectives::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class NcclLibraryTest : public ::testing::Test {
 protected:
  ~NcclLibraryTest() override { ::unsetenv("NCCL_STAND_IN_VERSION"); }

  static std::string refusal(const std::string& file) {
    const auto loaded = NcclLibrary::load(file);
    EXPECT_EQ(loaded.status().code(), Code::kUnavailable);
    EXPECT_THAT(loaded.status().message(), AllOf(HasSubstr("NCCL 2.18 or later is needed"),
                                                 HasSubstr("ELASTIC_NCCL_LIBRARY")));
    return loaded.status().message();
  }
};

TEST_F(NcclLibraryTest, ReadsVersionsOldAndNew) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(21800), "2.18");
  EXPECT_EQ(version_text(2708), "2.7.8");
}

TEST_F(NcclLibraryTest, SaysWhatIsMissing) {
  EXPECT_THAT(refusal("/nowhere/libnccl.so.2"), HasSubstr("/nowhere/libnccl.so.2"));
  EXPECT_THAT(refusal(NO_NCCL), AllOf(HasSubstr(NO_NCCL), HasSubstr("no ncclGetVersion")));
}

TEST_F(NcclLibraryTest, RefusesWhatIsTooOld) {
  ::setenv("NCCL_STAND_IN_VERSION", "21713", 1);
  EXPECT_THAT(refusal(NCCL_STAND_IN),
              AllOf(HasSubstr(NCCL_STAND_IN), HasSubstr("is NCCL 2.17.13")));
}

TEST_F(NcclLibraryTest, TakesTheOldestThatWillDo) {
  ::setenv("NCCL_STAND_IN_VERSION", "21800", 1);
  const auto loaded = NcclLibrary::load(NCCL_STAND_IN);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded.value()->version(), 21800);
  EXPECT_EQ(loaded.value()->describe(),
            std::string("NCCL 2.18 in ") + NCCL_STAND_IN + " (with shrink)")
      << "of the later functions the stand-in has this one";
}

/// NCCL itself, where it is: asking for its version needs no device.
TEST_F(NcclLibraryTest, TakesTheRealOne) {
  const auto loaded = NcclLibrary::load("");
  if (!loaded.ok()) {
    EXPECT_THAT(loaded.status().message(), HasSubstr("libnccl.so.2"));
    GTEST_SKIP() << loaded.status().message();
  }
  EXPECT_GE(loaded.value()->version(), kOldestVersion);
  EXPECT_THAT(loaded.value()->describe(), AllOf(HasSubstr("NCCL 2."), HasSubstr("libnccl.so.2")));
}

}  // namespace
}  // namespace elastic::collectives::nccl
