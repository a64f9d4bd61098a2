#include "rendezvous/launcher/notice/notice.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::notice {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using Kind = NoticeSource::Kind;

/// 2026-11-24 18:00:00 UTC.
const WallTime kNow = WallTime(seconds(1795543200));

std::string refusal(const Result<std::optional<Notice>>& answer) {
  return answer.ok() ? "it was understood" : answer.status().message();
}

TEST(Notice, NamesItsSources) {
  const auto source = [](const std::string& text) { return parse_notice_source(text).value(); };
  EXPECT_EQ(source("aws").kind, Kind::kAws);
  EXPECT_EQ(source("aws").address, "169.254.169.254:80");
  EXPECT_EQ(source("gcp@127.0.0.1:80").kind, Kind::kGcp);
  EXPECT_EQ(source("azure@h:8080").address, "h:8080");
  EXPECT_EQ(source("file:/a:b@c").address, "/a:b@c");
  EXPECT_EQ(source("command:test -e x").address, "test -e x");
  for (const char* wrong : {"", "ibm", "ibm@h:80", "file:", "command:"}) {
    EXPECT_THAT(parse_notice_source(wrong).status().message(), HasSubstr("give aws, gcp or azure"))
        << wrong;
  }
  for (const char* wrong : {"aws@", "aws@host", "aws@host:", "aws@localhost:99999", "gcp@:80",
                            "azure@h:0", "aws@h:x", "aws@h:80x"}) {
    EXPECT_THAT(parse_notice_source(wrong).status().message(),
                HasSubstr("is not HOST:PORT, with a port from 1 to 65535"))
        << wrong;
  }
}

TEST(Notice, OfEc2HasATime) {
  const auto notice =
      read_aws(R"({"action": "terminate", "time": "2026-11-24T18:02:00Z"})", kNow).value();
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->text, "EC2 will terminate this machine");
  EXPECT_EQ(notice->left, seconds(120));
  EXPECT_EQ(notice->late, seconds(0));
  const auto late = read_aws(R"({"action": "stop", "time": "2026-11-24T17:00:00Z"})", kNow).value();
  ASSERT_TRUE(late);
  EXPECT_EQ(late->left, seconds(0));
  EXPECT_EQ(late->late, seconds(3600));
  for (const char* odd : {"", "404 - Not Found", "[]", R"({"action": 3, "time": "x"})",
                          R"({"action": "stop"})", R"({"action": "stop", "time": "tomorrow"})",
                          R"({"action": "stop", "time": "9999-01-01T00:00:00Z"})"}) {
    EXPECT_THAT(refusal(read_aws(odd, kNow)), HasSubstr("EC2's metadata answers '")) << odd;
  }
}

TEST(Notice, OfGcpIsAWord) {
  EXPECT_FALSE(read_gcp("FALSE\n").value());
  EXPECT_EQ(read_gcp("TRUE").value()->left, seconds(30));
  EXPECT_THAT(refusal(read_gcp("<html>")), HasSubstr("GCP's metadata answers '<html>'"));
}

TEST(Notice, OfAzureNeedsTheMachinesName) {
  for (const char* name : {"vm1", "scale-set_12.a"}) EXPECT_TRUE(is_azure_name(name)) << name;
  for (const char* name : {"", "<html>hello</html>", "vm 1", "vm\n"}) {
    EXPECT_FALSE(is_azure_name(name)) << name;
  }
}

TEST(Notice, OfAzureIsForAMachine) {
  const std::string events = R"({"DocumentIncarnation": 2, "Events": [
    {"EventType": "Freeze", "Resources": ["me"], "NotBefore": ""},
    {"EventType": "Preempt", "Resources": ["other", 3], "NotBefore": "Tue, 24 Nov 2026 18:00:10 GMT"},
    {"EventType": "Reboot", "Resources": ["me"], "NotBefore": "Tue, 24 Nov 2026 18:05:00 GMT"},
    {"EventType": "Preempt", "Resources": ["other", "me"], "NotBefore": "Tue, 24 Nov 2026 18:00:40 GMT"},
    7]})";
  const auto notice = read_azure(events, "me", kNow).value();
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->text, "Azure will preempt this machine");
  EXPECT_EQ(notice->left, seconds(40));
  EXPECT_FALSE(read_azure(events, "nobody", kNow).value());
  EXPECT_FALSE(read_azure(R"({"Events": []})", "me", kNow).value());
  EXPECT_EQ(read_azure(
                R"({"Events": [{"EventType": "Terminate", "Resources": ["me"], "NotBefore": ""}]})",
                "me", kNow)
                .value()
                ->left,
            seconds(30))
      << "it has begun";
  for (const char* odd : {"", "[]", "{}", R"({"Events": {}})"}) {
    EXPECT_THAT(refusal(read_azure(odd, "me", kNow)), HasSubstr("Azure's metadata answers")) << odd;
  }
  EXPECT_FALSE(
      read_azure(R"({"Events": [{"EventType": "Preempt", "Resources": "me"}]})", "me", kNow)
          .value());
}

TEST(Notice, OfAFileOrACommandIsANumberOfSeconds) {
  EXPECT_EQ(read_seconds(" 45\n", "the file f").value()->left, seconds(45));
  EXPECT_EQ(read_seconds("", "the file f").value()->left, seconds(120));
  EXPECT_EQ(read_seconds("0", "the file f").value()->late, seconds(0)) << "it has no time of day";
  EXPECT_THAT(refusal(read_seconds("soon", "the file f")),
              HasSubstr("the file f says 'soon': it should be a number of seconds"));
  EXPECT_THAT(refusal(read_seconds("-1", "the file f")), HasSubstr("'-1'"));
}

}  // namespace
}  // namespace elastic::notice
