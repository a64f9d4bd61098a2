#include "collectives/transport/link_failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

using testing::HasSubstr;
using testing::Not;

const Endpoints kHere{"here", {"10.0.0.1:5"}, "local"};

TEST(LinkFailureTest, NamesThePeerAndTheLastTry) {
  const Peer peer{"0123456789", {"there", {"10.0.0.2:5"}, "local"}};
  EXPECT_EQ(describe_missing_link(peer, kHere, nullptr), "no link with worker 01234567 in time");
  const Status refused(Code::kUnavailable, "10.0.0.2:5: Connection refused");
  EXPECT_EQ(describe_missing_link(peer, kHere, &refused),
            "no link with worker 01234567 in time: 10.0.0.2:5: Connection refused");
}

TEST(LinkFailureTest, AdvisesToBindElsewhereOnlyBetweenHosts) {
  const Endpoints hidden{"there", {"127.0.0.1:5", "[::1]:5"}, "local"};
  EXPECT_THAT(describe_missing_link({"0123456789", hidden}, kHere, nullptr),
              HasSubstr("it listens on 127.0.0.1:5 only"));
  EXPECT_THAT(describe_missing_link({"0123456789", kHere}, hidden, nullptr),
              HasSubstr("this worker listens on 127.0.0.1:5 only"));
  Endpoints neighbour = hidden;
  neighbour.host = "here";
  EXPECT_THAT(describe_missing_link({"0123456789", neighbour}, kHere, nullptr),
              Not(HasSubstr("ELASTIC_BIND")));
}

}  // namespace
}  // namespace elastic::transport
