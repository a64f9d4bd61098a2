// Congestion control of real connections.
#include "collectives/transport/tcp/congestion.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"

namespace elastic::transport {
namespace {

std::string congestion_control_of(const UniqueFd& socket) {
  std::array<char, 16> name{};
  socklen_t length = name.size();
  ::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &length);
  return name.data();
}

class LocalConnection : public ::testing::Test {
 protected:
  void SetUp() override {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener_.get(), at, length), 0);
    ASSERT_EQ(::listen(listener_.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener_.get(), at, &length), 0);
    ASSERT_EQ(::connect(dialed_.get(), at, length), 0);
  }

  UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  UniqueFd dialed_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST_F(LocalConnection, StaysOnItsHost) {
  EXPECT_TRUE(stays_on_host(dialed_.get()));
  EXPECT_FALSE(stays_on_host(listener_.get()));  // connected to nothing
}

TEST_F(LocalConnection, TakesWhatEveryKernelHas) {
  const Status set = set_congestion_control(dialed_.get(), kLocalCongestionControl);
  EXPECT_TRUE(set.ok()) << set.message();
  EXPECT_EQ(congestion_control_of(dialed_), kLocalCongestionControl);
}

TEST_F(LocalConnection, NamesWhatTheKernelDoesNotHave) {
  const std::string before = congestion_control_of(dialed_);
  const Status set = set_congestion_control(dialed_.get(), "pigeon");
  EXPECT_EQ(set.code(), Code::kInvalidArgument);
  EXPECT_NE(set.message().find("pigeon"), std::string::npos);
  EXPECT_EQ(congestion_control_of(dialed_), before);
}

}  // namespace
}  // namespace elastic::transport
