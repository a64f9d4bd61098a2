#include "rendezvous/hosts/host_list.hpp"

#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const Result<HostList>& parsed) {
  return parsed.ok() ? "nothing was refused" : parsed.status().message();
}

TEST(HostList, OfACommandLine) {
  const auto hosts =
      parse_host_list("a:2, b,user@c.example:3,[fd00::2]:4,fd00::3,a:1", 5, "--hosts");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(hosts.value(), ElementsAre(Host{"a", 3, 2}, Host{"b", 5}, Host{"user@c.example", 3},
                                         Host{"fd00::2", 4}, Host{"fd00::3", 5}));
  EXPECT_EQ(total_slots(hosts.value()), 20);
}

TEST(HostList, OfAFileAsThatOfOpenMpiOrHorovod) {
  const auto hosts = parse_host_lines(
      "# a comment\n\n  a slots=2 max_slots=4\nb:3 # another\r\nc\nd\tslots=0\na slots=1", 1,
      "file");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(hosts.value(),
              ElementsAre(Host{"a", 3, 2}, Host{"b", 3}, Host{"c", 1}, Host{"d", 0}));
  EXPECT_TRUE(parse_host_lines("", 1, "file").value().empty());
}

TEST(HostList, NamesHostsThatComeMoreThanOnce) {
  const auto hosts = parse_host_list("a:2,b:1,a:2,c:1,c:1,c:1", 1, "--hosts");
  EXPECT_THAT(repeated_names(hosts.value()),
              ElementsAre("host a is named twice: 4 slots", "host c is named 3 times: 3 slots"));
}

TEST(HostList, SaysWhatCannotBeRead) {
  const auto list = [](const std::string& text) {
    return refusal(parse_host_list(text, 1, "--hosts"));
  };
  EXPECT_THAT(list("a:2,"), HasSubstr("--hosts: '' is no name of a host"));
  EXPECT_THAT(list("a:two"), HasSubstr("'a:two': 'two' is no number of slots"));
  EXPECT_THAT(list("a:-1"), HasSubstr("'-1' is no number of slots"));
  EXPECT_THAT(list("a:99999"), HasSubstr("'99999' is no number of slots"));
  EXPECT_THAT(list("[fd00::2:4"), HasSubstr("lacks a ']'"));
  EXPECT_THAT(list("[fd00::2]x"), HasSubstr("is not [ADDRESS]:SLOTS"));
  const auto lines = [](const std::string& text) {
    return refusal(parse_host_lines(text, 1, "file"));
  };
  EXPECT_THAT(lines("a\nb slots=x"), HasSubstr("file, line 2: 'slots=x' has no number of slots"));
  EXPECT_THAT(lines("a slot=2"), HasSubstr("file, line 1: 'slot=2' is not slots=N"));
  EXPECT_THAT(lines("a 2"), HasSubstr("'2' is not slots=N"));
  EXPECT_THAT(lines("a;reboot"), HasSubstr("'a;reboot' is no name of a host"));
  EXPECT_LT(lines(std::string(100'000, '-')).size(), 1000U);
}

TEST(HostList, NoNameIsTakenForAnOptionOfSsh) {
  EXPECT_THAT(refusal(parse_host_list("-oProxyCommand=x", 1, "--hosts")),
              HasSubstr("is no name of a host"));
  EXPECT_THAT(refusal(parse_host_lines("-F/tmp/x", 1, "file")), HasSubstr("is no name of a host"));
}

TEST(HostList, PlacesWorkersInTurnOrOneHostAfterTheOther) {
  const HostList hosts = {{"a", 2}, {"b", 0}, {"c", 4}};
  EXPECT_THAT(place(hosts, 3, Placement::kSpread), ElementsAre(2, 0, 1));
  EXPECT_THAT(place(hosts, 5, Placement::kSpread), ElementsAre(2, 0, 3));
  EXPECT_THAT(place(hosts, 3, Placement::kPack), ElementsAre(2, 0, 1));
  EXPECT_THAT(place(hosts, 1, Placement::kPack), ElementsAre(1, 0, 0));
  EXPECT_THAT(place(hosts, 100, Placement::kSpread), ElementsAre(2, 0, 4));
  EXPECT_TRUE(place({}, 3, Placement::kSpread).empty());
}

}  // namespace
}  // namespace elastic::hosts
