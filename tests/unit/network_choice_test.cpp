#include "base/network_choice.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/port_range.hpp"

namespace elastic {
namespace {

using ::testing::HasSubstr;

const std::vector<InterfaceAddress> kHost{
    {"eth0", boost::asio::ip::make_address("192.168.1.5")},
    {"docker0", boost::asio::ip::make_address("172.17.0.1")},
    {"eth1", boost::asio::ip::make_address("10.0.3.7")},
    {"eth1", boost::asio::ip::make_address("fd00::7")},
    {"lo", boost::asio::ip::make_address("127.0.0.1")},
};

std::string chosen(const std::string& text) {
  const auto choice = NetworkChoice::parse(text);
  if (!choice.ok()) return choice.status().message();
  const auto found = choice.value().choose(kHost);
  if (!found.ok()) return found.status().message();
  std::string all;
  for (const auto& address : found.value()) all += (all.empty() ? "" : " ") + address.to_string();
  return all;
}

TEST(NetworkChoice, NetworksAddressesAndInterfaces) {
  EXPECT_EQ(chosen("10.0.0.0/16"), "10.0.3.7");
  EXPECT_EQ(chosen("10.0.9.9/16"), "10.0.3.7") << "bits after the prefix do not matter";
  EXPECT_EQ(chosen("10.0.3.0/30"),
            "this host has no address in 10.0.3.0/30; it has 192.168.1.5 (eth0), 172.17.0.1 "
            "(docker0), 10.0.3.7 (eth1), fd00::7 (eth1), 127.0.0.1 (lo)");
  EXPECT_EQ(chosen("eth1"), "10.0.3.7 fd00::7");
  EXPECT_EQ(chosen("192.168.1.5"), "192.168.1.5");
  EXPECT_EQ(chosen("fd00::/8"), "fd00::7");
  EXPECT_EQ(chosen("fd00::8/125"),
            "this host has no address in fd00::8/125; it has 192.168.1.5 "
            "(eth0), 172.17.0.1 (docker0), 10.0.3.7 (eth1), fd00::7 "
            "(eth1), 127.0.0.1 (lo)");
  EXPECT_EQ(chosen("0.0.0.0/0"), "192.168.1.5 172.17.0.1 10.0.3.7 127.0.0.1");
}

TEST(NetworkChoice, TheFirstPartIsPreferred) {
  EXPECT_EQ(chosen("eth1,192.168.0.0/16,10.0.0.0/8"), "10.0.3.7 fd00::7 192.168.1.5");
  EXPECT_EQ(chosen("ib0,eth0"), "192.168.1.5");
}

TEST(NetworkChoice, WhatIsNoneIsNamed) {
  for (const std::string part : {"10.0.0.0/33", "10.0.0", "10.0.0.256", "eth 0", "a/b",
                                 "fd00::/129", "a-name-of-16-chrs", "10.0.0.0/", "/8", "-1"}) {
    EXPECT_THAT(chosen("eth0," + part),
                HasSubstr("'" + part + "' is no network, address or interface"));
  }
  EXPECT_THAT(chosen("eth0,,eth1"), HasSubstr("'' is no network"));
  EXPECT_THAT(chosen(""), HasSubstr("no network is named"));
}

TEST(PortRange, OfTwoPortsOfOneOrOfAny) {
  const auto range = [](const std::string& text) { return PortRange::parse(text).value().text(); };
  EXPECT_EQ(range("40000-40099"), "40000-40099");
  EXPECT_EQ(range("65535"), "65535-65535");
  EXPECT_EQ(range(""), "0-0");
  for (const std::string text :
       {"0", "40000-", "-5", "2-1", "1-65536", "a-b", "1-2-3", "0-5", " 1-2", "1,2"}) {
    EXPECT_THAT(PortRange::parse(text).status().message(), HasSubstr("'" + text + "' is not"));
  }
}

}  // namespace
}  // namespace elastic
