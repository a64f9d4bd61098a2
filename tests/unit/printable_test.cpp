#include "base/printable.hpp"

#include <string>

#include <gtest/gtest.h>

#include "base/log_limit.hpp"
#include "base/status.hpp"

namespace elastic {
namespace {

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a \x1b[2Jb\r\x07\x7f"), "a \\x1b[2Jb\\x0d\\x07\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x9b"
                      "2J \xc2\x9b"
                      "2J"),
            "\\x9b2J \xc2\\x9b2J");
}

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("two\nlines\tof \xc3\xa4\xe2\x82\xac"),
            "two\nlines\tof \xc3\xa4\xe2\x82\xac");
}

TEST(Printable, ANameIsOneLine) {
  EXPECT_EQ(printable_name("a\nelastic error: b\t"), "a\\x0aelastic error: b\\x09");
}

TEST(Printable, MessagesOfFailuresAre) {
  EXPECT_EQ(Status(Code::kRefused, "job '\x1b]0;title\x07'").message(), "job '\\x1b]0;title\\x07'");
}

TEST(LogLimit, LetsAFloodWriteAFewLines) {
  LogLimit limit;
  const TimePoint start{};
  int written = 0;
  for (int i = 0; i < 1000; ++i) written += limit.admit(start) ? 1 : 0;
  EXPECT_EQ(written, 10);
  EXPECT_FALSE(limit.admit(start + Milliseconds(999)));
  EXPECT_EQ(limit.admit(start + Milliseconds(1000)), " (991 such lines were left out)");
  EXPECT_FALSE(limit.admit(start + Milliseconds(1500)));
  EXPECT_EQ(limit.admit(start + Milliseconds(2000)), " (1 such lines were left out)");
}

TEST(LogLimit, IsFullAgainAfterAWhile) {
  LogLimit limit;
  const TimePoint start{};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.admit(start), "");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.admit(start + Milliseconds(60000)), "");
  EXPECT_FALSE(limit.admit(start + Milliseconds(60000)));
}

}  // namespace
}  // namespace elastic
