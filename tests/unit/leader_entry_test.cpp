// The value by which servers know the one that leads.
#include "rendezvous/server/leader_entry.hpp"

#include <gtest/gtest.h>

namespace elastic::rendezvous {
namespace {

TEST(LeaderEntryTest, IsReadAsItWasWritten) {
  const LeaderEntry entry{"[::1]:29400", "5e"};
  EXPECT_EQ(parse_leader_entry(text_of(entry)), entry);
}

TEST(LeaderEntryTest, IsEmptyWhereItIsSomethingElse) {
  for (const char* text : {"", "[]", "7", "{", "{}", R"({"address":7,"secret":[]})"}) {
    EXPECT_EQ(parse_leader_entry(text), LeaderEntry{}) << text;
  }
}

TEST(LeaderEntryTest, TellsSecretsApart) {
  const Secret secret = random_secret();
  EXPECT_EQ(secret_fingerprint(secret).value(), secret_fingerprint(secret).value());
  EXPECT_NE(secret_fingerprint(secret).value(), secret_fingerprint(random_secret()).value());
  EXPECT_NE(secret_fingerprint(secret).value(), to_hex(secret));
  EXPECT_FALSE(secret_fingerprint(Secret()).ok());
}

}  // namespace
}  // namespace elastic::rendezvous
