#include "rendezvous/launcher/status_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

rendezvous::StatusReply with_joiner(const std::string& waits_for) {
  rendezvous::StatusReply status;
  status.joiners = {{"3f2a", "2", 92, true, waits_for}};
  return status;
}

TEST(StatusTable, SaysWhyAJoinerIsKeptWaiting) {
  const auto status = with_joiner("a faster line: 20.0 s");
  EXPECT_THAT(status_table(status), HasSubstr("waiting"));
  EXPECT_THAT(status_table(status), HasSubstr("pid 92 waits for a faster line: 20.0 s\n"));
  EXPECT_THAT(status_json(status), HasSubstr(R"("waits_for":"a faster line: 20.0 s")"));
}

TEST(StatusTable, AJoinerThatWaitsForTheNextStepIsJoining) {
  EXPECT_THAT(status_table(with_joiner("")), HasSubstr("joining"));
  EXPECT_THAT(status_table(with_joiner("")), Not(HasSubstr("waits for")));
}

}  // namespace
}  // namespace elastic::launcher
