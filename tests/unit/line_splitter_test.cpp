#include "rendezvous/launcher/line_splitter.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::launcher {
namespace {

using testing::ElementsAre;

struct Split {
  std::vector<std::string> lines;
  LineSplitter splitter{[this](std::string_view line) { lines.emplace_back(line); }};
};

TEST(LineSplitter, JoinsPiecesAndKeepsEmptyLines) {
  Split split;
  split.splitter.feed("a");
  split.splitter.feed("b\n\nc\nd");
  EXPECT_THAT(split.lines, ElementsAre("ab", "", "c"));
  split.splitter.finish();
  EXPECT_THAT(split.lines, ElementsAre("ab", "", "c", "d"));
  split.splitter.finish();
  EXPECT_EQ(split.lines.size(), 4U);
}

TEST(LineSplitter, PassesAnEndlessLineOnInPieces) {
  Split split;
  split.splitter.feed(std::string(LineSplitter::kMostBytes * 2 + 1, 'x'));
  ASSERT_EQ(split.lines.size(), 2U);
  EXPECT_EQ(split.lines[0].size(), LineSplitter::kMostBytes);
  split.splitter.feed("\n");
  ASSERT_EQ(split.lines.size(), 3U);
  EXPECT_EQ(split.lines[2], "x");
}

}  // namespace
}  // namespace elastic::launcher
