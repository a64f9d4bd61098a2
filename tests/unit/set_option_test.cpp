#include <algorithm>
#include <cctype>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config/options.hpp"
#include "base/config/variables.hpp"

namespace elastic {
namespace {

using ::testing::HasSubstr;

std::string name_of(const Variable& variable) {
  std::string name = variable.name.substr(std::string("ELASTIC_").size());
  std::transform(name.begin(), name.end(), name.begin(), ::tolower);
  return name;
}

TEST(SetOption, KnowsWhatTheEnvironmentKnows) {
  for (const Variable& variable : variables()) {
    Options options;
    const std::string value = variable.values.get(Options());
    EXPECT_TRUE(set_by_name(options, name_of(variable), value).ok()) << variable.name;
    EXPECT_EQ(variable.values.get(options), value);
  }
}

TEST(SetOption, SetsTheField) {
  Options options;
  ASSERT_TRUE(set_by_name(options, "bucket_bytes", "3M").ok());
  ASSERT_TRUE(set_by_name(options, "view_timeout_ms", "77").ok());
  ASSERT_TRUE(set_by_name(options, "transport", "tcp").ok());
  EXPECT_EQ(options.bucket_bytes, 3U << 20);
  EXPECT_EQ(options.view_timeout, std::chrono::milliseconds(77));
  EXPECT_EQ(options.transport, Transport::kTcp);
}

TEST(SetOption, RefusesOtherNamesAndValues) {
  Options options;
  EXPECT_THAT(set_by_name(options, "view_timeout", "77").message(),
              HasSubstr("option 'view_timeout' is not known; did you mean 'view_timeout_ms'?"));
  EXPECT_THAT(set_by_name(options, "ELASTIC_TRANSPORT", "tcp").message(), HasSubstr("not known"));
  EXPECT_THAT(set_by_name(options, "Transport", "tcp").message(), HasSubstr("'transport'"));
  for (const char* const unlike : {"", "foo"}) {
    EXPECT_THAT(set_by_name(options, unlike, "").message(),
                HasSubstr("is not known; docs/environment.md lists all"));
  }
  EXPECT_THAT(set_by_name(options, "transport", "udp").message(),
              HasSubstr("option transport is 'udp': must be one of auto shm tcp"));
  EXPECT_EQ(options.transport, Transport::kAuto);
}

}  // namespace
}  // namespace elastic
