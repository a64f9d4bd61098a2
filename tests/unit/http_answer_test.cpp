#include "rendezvous/monitoring/http_answer.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/watched_job.hpp"

namespace elastic::monitoring {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class DocumentsTest : public ::testing::Test {
 protected:
  HttpAnswer ask(const std::string& method, const std::string& target) {
    return documents_.answer(method, target, now_);
  }

  int asked_ = 0;
  TimePoint now_{};
  Documents documents_{[this] {
    ++asked_;
    return testing::watched_job();
  }};
};

TEST_F(DocumentsTest, HasAPageMetricsAndTheStatus) {
  EXPECT_THAT(ask("GET", "/").type, StartsWith("text/html"));
  EXPECT_THAT(ask("GET", "/metrics").type, HasSubstr("version=0.0.4"));
  EXPECT_THAT(*ask("GET", "/metrics?x=1").body, HasSubstr("elastic_steps_total 1000"));
  EXPECT_THAT(ask("GET", "/status.json").type, StartsWith("application/json"));
  EXPECT_THAT(*ask("HEAD", "/status.json").body, HasSubstr("\"job\":\"digits\""));
}

TEST_F(DocumentsTest, CanOnlyBeRead) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get"}) {
    EXPECT_EQ(ask(method, "/").status, 405U) << method;
  }
  EXPECT_EQ(ask("GET", "/../etc/passwd").status, 404U);
  EXPECT_EQ(asked_, 0);
}

TEST_F(DocumentsTest, IsMadeAtMostAFewTimesASecond) {
  const auto first = ask("GET", "/metrics").body;
  now_ += Milliseconds(249);
  EXPECT_EQ(ask("GET", "/metrics").body, first);
  EXPECT_EQ(asked_, 1);
  now_ += Milliseconds(1);
  EXPECT_NE(ask("GET", "/metrics").body, first);
  EXPECT_EQ(asked_, 2);
}

TEST(LocalName, IsAnAddressOrLocalhost) {
  for (const char* host : {"127.0.0.1:9090", "127.0.0.1", "[::1]:9090", "localhost:9090", ""}) {
    EXPECT_TRUE(is_local_name(host)) << host;
  }
  for (const char* host : {"example.org", "example.org:9090", "127.0.0.1.example.org"}) {
    EXPECT_FALSE(is_local_name(host)) << host;
  }
}

}  // namespace
}  // namespace elastic::monitoring
