#include "collectives/model/network_file.hpp"

#include <string>

#include <gmock/gmock.h>

namespace elastic::model {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = ELASTIC_NETWORKS;

constexpr const char* kGood = R"({
  "about": "two hosts",
  "sources": ["none"],
  "line": {
    "gbit_per_second": 8,
    "payload": 0.5,
    "latency_us": 20,
    "burst_kib": 4
  },
  "host": { "latency_us": 1, "cores": 2 },
  "processor": {
    "send_gb_per_second": 4
  }
})";

std::string replaced(const std::string& what, const std::string& by) {
  std::string text = kGood;
  return text.replace(text.find(what), what.size(), by);
}

std::string error_of(const std::string& text) {
  const auto network = parse_network(text, "folder/lab.json");
  EXPECT_FALSE(network.ok());
  EXPECT_EQ(network.status().code(), Code::kInvalidArgument);
  return network.status().message();
}

TEST(NetworkFile, IsReadInSecondsAndBytes) {
  const auto network = parse_network(kGood, "folder/lab.json");
  ASSERT_TRUE(network.ok()) << network.status().message();
  EXPECT_EQ(network.value().name, "lab");
  EXPECT_EQ(network.value().about, "two hosts");
  EXPECT_DOUBLE_EQ(network.value().line.rate, 0.5e9);
  EXPECT_EQ(network.value().line.flow_rate, kUnlimited);
  EXPECT_DOUBLE_EQ(network.value().line.latency, 20e-6);
  EXPECT_DOUBLE_EQ(network.value().line.burst, 4096);
  EXPECT_DOUBLE_EQ(network.value().host.cores, 2);
  EXPECT_DOUBLE_EQ(network.value().processor.send, 0.25e-9);
  EXPECT_EQ(network.value().processor.receive, 0);
}

TEST(NetworkFile, ErrorsNameFileLineAndField) {
  EXPECT_EQ(
      error_of(replaced("\"payload\": 0.5", "\"payload\": 99")),
      "folder/lab.json:6: \"payload\" of \"line\" is 99: it has to be a number from 0.01 to 1");
  EXPECT_EQ(error_of(replaced("\"latency_us\": 1,", "\"latency_us\": \"1\",")),
            "folder/lab.json:10: \"latency_us\" of \"host\" is \"1\": it has to be a number from 0 "
            "to 1000000000");
  EXPECT_EQ(error_of(replaced("\"latency_us\": 20,", "\"latency_us\": 20, \"latency_us\": 21,")),
            "folder/lab.json:1: has \"latency_us\" twice in one object");
  EXPECT_THAT(error_of(replaced("\"latency_us\": 20,", "\"latency_us\": 1e999,")),
              HasSubstr("folder/lab.json:1: cannot be taken: "));
  EXPECT_EQ(error_of(replaced("\"latency_us\": 20,", "")),
            "folder/lab.json:4: lacks the field \"latency_us\" of \"line\"");
  EXPECT_THAT(error_of(replaced("send_gb", "sent_gb")),
              HasSubstr("folder/lab.json:12: \"sent_gb_per_second\" is no field of \"processor\"; "
                        "these are: threads, "));
  EXPECT_THAT(error_of(replaced("\"host\"", "\"hots\"")),
              HasSubstr("folder/lab.json:10: \"hots\" is no field; these are: about, "));
  EXPECT_THAT(error_of(replaced("8,", "8")), HasSubstr("folder/lab.json:6: is no JSON here"));
  EXPECT_THAT(error_of(replaced("\"sources\": [\"none\"],", "")),
              HasSubstr("folder/lab.json:1: lacks the field \"sources\""));
  EXPECT_THAT(error_of("[]"), HasSubstr("folder/lab.json:1: has to be an object"));
}

TEST(NetworkFile, AnUnknownNameListsTheKnownOnes) {
  const auto network = read_network("c6n", kFolder);
  ASSERT_FALSE(network.ok());
  EXPECT_THAT(network.status().message(),
              HasSubstr("'c6n' is no network; known are c5n.18xlarge, "));
  const auto missing = read_network("./none.json", kFolder);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("./none.json: cannot be read"));
}

TEST(NetworkFile, AllThatShipAreRead) {
  EXPECT_GE(networks_in(kFolder).size(), 5U);
  for (const std::string& name : networks_in(kFolder)) {
    const auto network = read_network(name, kFolder);
    EXPECT_TRUE(network.ok()) << network.status().message();
  }
}

}  // namespace
}  // namespace elastic::model
