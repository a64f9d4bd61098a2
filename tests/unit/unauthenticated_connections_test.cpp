#include "base/unauthenticated_connections.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace elastic {
namespace {

using Id = UnauthenticatedConnections::Id;

std::string origin(const char* address) {
  return origin_of(boost::asio::ip::make_address(address));
}

TEST(UnauthenticatedConnections, DisplaceNoneWhileThereIsRoom) {
  UnauthenticatedConnections connections(2);
  EXPECT_EQ(connections.admit("a").displaced, std::nullopt);
  EXPECT_EQ(connections.admit("a").displaced, std::nullopt);
  EXPECT_EQ(connections.size(), 2U);
}

TEST(UnauthenticatedConnections, DisplaceTheOldestSilentOne) {
  UnauthenticatedConnections connections(3);
  const Id speaks = connections.admit("a").admitted;
  const Id silent = connections.admit("a").admitted;
  connections.admit("a");
  connections.heard(speaks);
  EXPECT_EQ(connections.admit("a").displaced, silent);
  EXPECT_EQ(connections.size(), 3U);
}

TEST(UnauthenticatedConnections, DisplaceTheOldestWhereAllHaveSpoken) {
  UnauthenticatedConnections connections(2);
  const Id oldest = connections.admit("a").admitted;
  const Id other = connections.admit("a").admitted;
  connections.heard(oldest);
  connections.heard(other);
  EXPECT_EQ(connections.admit("a").displaced, oldest);
}

TEST(UnauthenticatedConnections, TakePlacesFromTheOriginThatHasMost) {
  UnauthenticatedConnections connections(4);
  const Id alone = connections.admit("peer").admitted;
  std::vector<Id> flood;
  for (int i = 0; i < 3; ++i) flood.push_back(connections.admit("flood").admitted);
  for (int i = 0; i < 10; ++i) {
    const auto admission = connections.admit("flood");
    EXPECT_EQ(admission.displaced, flood[static_cast<std::size_t>(i)]);
    flood.push_back(admission.admitted);
  }
  connections.remove(alone);
  EXPECT_EQ(connections.size(), 3U);
  EXPECT_EQ(connections.admit("peer").displaced, std::nullopt);
}

TEST(UnauthenticatedConnections, ForgetWhatHasLeft) {
  UnauthenticatedConnections connections(1);
  const Id first = connections.admit("a").admitted;
  EXPECT_EQ(connections.admit("a").displaced, first);
  connections.heard(first);
  connections.remove(first);
  EXPECT_EQ(connections.size(), 1U);
}

TEST(OriginOf, IsAnAddressOrANetwork) {
  EXPECT_EQ(origin("10.0.0.1"), "10.0.0.1");
  EXPECT_NE(origin("10.0.0.1"), origin("10.0.0.2"));
  EXPECT_EQ(origin("::ffff:10.0.0.1"), origin("10.0.0.1"));
  EXPECT_EQ(origin("2001:db8:1:2::1"), origin("2001:db8:1:2:ffff::9"));
  EXPECT_NE(origin("2001:db8:1:2::1"), origin("2001:db8:1:3::1"));
}

}  // namespace
}  // namespace elastic
