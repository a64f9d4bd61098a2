#include "base/module_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ModuleFileTest : public ::testing::Test {
 protected:
  ModuleFileTest() {
    std::string name = (fs::temp_directory_path() / "elastic-modules-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ModuleFileTest() override { fs::remove_all(folder_); }

  std::string failure(const std::string& name) const {
    const auto loaded = load_module(name, folder_.string());
    EXPECT_EQ(loaded.status().code(), Code::kUnavailable);
    return loaded.status().message();
  }
  std::string file(const std::string& name) const {
    return (folder_ / ("libelastic_" + name + ".so")).string();
  }

  fs::path folder_;
};

TEST_F(ModuleFileTest, SaysWhereItSearched) {
  EXPECT_THAT(failure("strange"), AllOf(HasSubstr("'strange'"), HasSubstr(file("strange"))));
}

TEST_F(ModuleFileTest, SaysThatItWasNotBuilt) {
  EXPECT_THAT(failure("strange"), HasSubstr("this build was made without it"));
  for (const std::string& name : modules_built()) {
    EXPECT_THAT(failure(name),
                AllOf(HasSubstr("was not found"), HasSubstr("ELASTIC_BACKEND_PATH")));
  }
}

TEST_F(ModuleFileTest, SaysWhyAFileCannotBeLoaded) {
  std::ofstream(file("text")) << "no shared object\n";
  EXPECT_THAT(failure("text"), AllOf(HasSubstr(file("text")), HasSubstr("file too short")));
}

TEST_F(ModuleFileTest, RefusesASharedObjectThatIsNoModule) {
  fs::copy_file(SOME_LIBRARY, file("library"));
  EXPECT_THAT(failure("library"), HasSubstr("is no module of elastic"));
}

TEST_F(ModuleFileTest, RefusesAModuleOfAnotherBuild) {
  fs::copy_file(MODULE_OF_ANOTHER_BUILD, file("old"));
  EXPECT_THAT(failure("old"), AllOf(HasSubstr("of another build of elastic"),
                                    HasSubstr("elastic 0.0.1 modules 1")));
}

/// Without a folder, modules are found as other libraries of the build tree are.
TEST_F(ModuleFileTest, LoadsWhatWasBuilt) {
  for (const std::string& name : modules_built()) {
    const auto loaded = load_module(name, "");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_FALSE(loaded.value()->describe().empty());
  }
}

}  // namespace
}  // namespace elastic
