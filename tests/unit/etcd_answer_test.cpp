// The meaning of answers of etcd's JSON gateway; base64; the text of --store.
#include "rendezvous/etcd/etcd_answer.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rendezvous/etcd/base64.hpp"
#include "rendezvous/etcd/etcd_options.hpp"

namespace elastic::etcd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kOkay = 200;
constexpr int kBad = 400;

Status failure_of(int status, const std::string& body) {
  return read_answer({status, body}).status();
}
Status failure(int code, const char* text) {
  return failure_of(kBad,
                    nlohmann::json{{"error", text}, {"message", text}, {"code", code}}.dump());
}

TEST(EtcdAnswerTest, IsAnObject) {
  const auto answer = read_answer({kOkay, R"({"ID":"7","TTL":"5"})"});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value().at("TTL"), "5");
}

TEST(EtcdAnswerTest, IsInAResultWhereItIsOfAStream) {
  const auto answer = read_answer({kOkay, "{\"result\":{\"ID\":\"7\"}}\n"});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value().at("ID"), "7");
}

TEST(EtcdAnswerTest, SendsToAnotherMember) {
  constexpr int kGrpcUnavailable = 14;
  EXPECT_EQ(failure(kGrpcUnavailable, "etcdserver: no leader").code(), Code::kUnavailable);
  EXPECT_EQ(
      failure_of(kBad, R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})").code(),
      Code::kUnavailable);
}

/// etcd has several codes for what passes, and Unknown where it has none.
TEST(EtcdAnswerTest, SendsToAnotherMemberUnlessTheAnswerIsFinal) {
  const std::pair<int, const char*> passing[] = {{2, "raft proposal dropped"},
                                                 {5, "etcdserver: requested lease not found"},
                                                 {8, "etcdserver: too many requests"},
                                                 {9, "etcdserver: not leader"},
                                                 {13, "internal"},
                                                 {14, "etcdserver: leader changed"},
                                                 {14, "etcdserver: request timed out"}};
  for (const auto& [code, text] : passing) {
    EXPECT_EQ(failure(code, text).code(), Code::kUnavailable) << text;
  }
}

TEST(EtcdAnswerTest, RefusesWithARemedy) {
  const Status wrong = failure(3, "etcdserver: authentication failed, invalid user ID or password");
  EXPECT_EQ(wrong.code(), Code::kInvalidArgument);
  EXPECT_THAT(wrong.message(), HasSubstr("--store-password-file"));
  EXPECT_EQ(failure(7, "etcdserver: permission denied").code(), Code::kRefused);
  EXPECT_THAT(failure(3, "etcdserver: user name is empty").message(), HasSubstr("--store-user"));
  EXPECT_THAT(failure(7, "etcdserver: permission denied").message(), HasSubstr("elastic/JOB/"));
}

TEST(EtcdAnswerTest, TellsOfAnOldToken) {
  EXPECT_EQ(failure(16, "etcdserver: invalid auth token").code(), Code::kAborted);
}

TEST(EtcdAnswerTest, RefusesTheRequest) {
  EXPECT_EQ(failure(3, "etcdserver: request is too large").code(), Code::kInternal);
  EXPECT_EQ(failure(12, "unknown service").code(), Code::kInternal);
}

TEST(EtcdAnswerTest, IsNotEtcds) {
  for (const char* body : {"", "<html>", "[]", "7", "{\"error\":7}", "{\"error\":{}}",
                           "{\"error\":\"x\",\"code\":\"y\"}", "{\"result\":7}"}) {
    const Status status = failure_of(kOkay, body);
    EXPECT_EQ(status.code(), Code::kProtocol) << body;
    EXPECT_THAT(status.message(), HasSubstr("client URLs")) << body;
  }
  EXPECT_EQ(failure_of(kBad, "{}").code(), Code::kProtocol);
}

TEST(Base64Test, AsInRfc4648) {
  const std::string text = "foobar";
  const char* const encoded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (std::size_t i = 0; i <= text.size(); ++i) {
    EXPECT_EQ(to_base64(text.substr(0, i)), encoded[i]);
    EXPECT_EQ(from_base64(encoded[i]), text.substr(0, i));
  }
  for (const char* wrong : {"Z", "Zg=", "====", "Z===", "Zm9*"}) {
    EXPECT_FALSE(from_base64(wrong).has_value()) << wrong;
  }
}

TEST(StoreTextTest, NamesMembers) {
  EXPECT_THAT(parse_store("etcd:a:1,[::1]:2").value(), ElementsAre("a:1", "[::1]:2"));
  for (const char* wrong : {"", "etcd", "etcd:", "etcd:a", "etcd:a:1,", "etcd:,a:1", "etcd:a:1;b:2",
                            "http://a:1", "a:1", "etcd:http://a:1", "etcd:a:99999"}) {
    const Status status = parse_store(wrong).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << wrong;
    EXPECT_THAT(status.message(), HasSubstr("etcd:HOST:PORT,HOST:PORT")) << wrong;
  }
}

}  // namespace
}  // namespace elastic::etcd
