// The notes that a rank of the tree sends on, and the moment at which it does.
#include "coordinator/note_gathering.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

TensorRequest tensor(const std::string& name, std::uint64_t count = 1) {
  return {name, kAllreduceRequest, ReduceOp::kSum, {{DType::kF32, count}}};
}

/// "4-7: ready 1; 5: blocked" for what goes on.
std::string taken(NoteGathering& gathering) {
  std::string text;
  for (const RanksNote& note : gathering.take()) {
    const auto items = read_note(note.bytes);
    EXPECT_TRUE(items.ok()) << items.status().message();
    for (const NoteItem& item : items.value()) {
      if (!text.empty()) text += "; ";
      text += std::to_string(note.from.first);
      if (note.from.count > 1) text += "-" + std::to_string(note.from.end() - 1);
      if (const auto* ready = std::get_if<BucketReady>(&item)) {
        text += ": ready " + std::to_string(ready->bucket);
      } else if (const auto* submission = std::get_if<SubmitByName>(&item)) {
        text += ": " + submission->request.name;
      } else if (const auto* joined = std::get_if<Joined>(&item)) {
        text += ": joined in " + std::to_string(joined->position);
      } else {
        text += ": blocked";
      }
    }
  }
  return text;
}

/// Rank 4 of eight or more ranks, with children 5 and 6, the latter with child 7.
class NoteGatheringTest : public ::testing::Test {
 protected:
  NoteGatheringTest() { gathering.restart({4, 4}); }

  void ready(RankRange from, std::uint64_t bucket = 1) {
    EXPECT_TRUE(gathering.add(from, BucketReady{bucket}, bucket).ok());
  }
  void submit(RankRange from, const TensorRequest& request, std::uint64_t bucket = 0) {
    EXPECT_TRUE(gathering.add(from, SubmitByName{request}, bucket).ok());
  }
  void join(RankRange from) { EXPECT_TRUE(gathering.add(from, Joined{3}, 0).ok()); }
  void block(RankRange from) { EXPECT_TRUE(gathering.add(from, Blocked{}, 0).ok()); }
  std::string taken() { return coordinator::taken(gathering); }

  NoteGathering gathering;
};

TEST_F(NoteGatheringTest, SendsOneNoteForWhatAllSay) {
  ready({5});
  submit({6, 2}, tensor("a"));
  ready({6, 2});
  EXPECT_EQ(taken(), "");
  ready({4});
  EXPECT_EQ(taken(), "4-7: ready 1");
  submit({4}, tensor("a"));
  submit({5}, tensor("a"));
  EXPECT_EQ(taken(), "4-7: a");
  ready({4, 4});  // of the next step
  EXPECT_EQ(taken(), "4-7: ready 1");
}

TEST_F(NoteGatheringTest, SendsOnWhatASingleRankSaysAtOnce) {
  gathering.restart({5});
  ready({5});
  submit({5}, tensor("a"));
  block({5});
  EXPECT_EQ(taken(), "5: ready 1; 5: a; 5: blocked");
}

TEST_F(NoteGatheringTest, SendsTensorsThatDifferAsTheyCame) {
  submit({6, 2}, tensor("a", 2));
  submit({4}, tensor("a"));
  EXPECT_EQ(taken(), "");
  submit({5}, tensor("a"));
  EXPECT_EQ(taken(), "6-7: a; 4: a; 5: a");
}

TEST_F(NoteGatheringTest, DoesNotHoldATensorOfAKnownBucket) {
  ready({6, 2});
  submit({5}, tensor("a"), 1);
  EXPECT_EQ(taken(), "6-7: ready 1; 5: a");
  ready({4});  // waits for nothing either
  EXPECT_EQ(taken(), "4: ready 1");
  gathering.dissolved(1);
  submit({6, 2}, tensor("a"));
  EXPECT_EQ(taken(), "");
  submit({4}, tensor("a"));
  EXPECT_EQ(taken(), "6-7: a; 4: a") << "rank 5 has said so before";
}

TEST_F(NoteGatheringTest, HoldsNothingOnceNothingHasHappenedForLong) {
  ready({4});
  submit({6, 2}, tensor("a"));
  block({6, 2});
  EXPECT_EQ(taken(), "");
  gathering.release();
  EXPECT_EQ(taken(), "6-7: a; 4: ready 1; 6-7: blocked") << "blocked comes last";
  gathering.release();
  EXPECT_EQ(taken(), "");
  ready({5}, 2);
  block({5});
  EXPECT_EQ(taken(), "5: ready 2; 5: blocked");
}

TEST_F(NoteGatheringTest, HoldsNothingWhenAllAreBlocked) {
  ready({4});
  block({4});
  block({6, 2});
  EXPECT_EQ(taken(), "");
  block({5});
  EXPECT_EQ(taken(), "4: ready 1; 4-7: blocked");
}

TEST_F(NoteGatheringTest, ForgetsThatARankWasBlockedWhenItSaysMore) {
  block({4, 4});
  taken();
  gathering.restart({4, 4});
  block({6, 2});
  ready({7});
  block({4});
  gathering.release();
  EXPECT_EQ(taken(), "7: ready 1; 4: blocked; 6: blocked");
}

TEST_F(NoteGatheringTest, HoldsAgainAfterTheNextOrder) {
  BucketTable table;
  Bucket& bucket = table.insert({std::make_shared<const TensorRequest>(tensor("a"))});
  bucket.id = 1;
  submit({5}, tensor("a"), 1);
  ready({4});
  ready({6, 2});
  gathering.release();
  EXPECT_EQ(taken(), "5: a; 4: ready 1; 6-7: ready 1");
  gathering.ordered(bucket);
  ready({4});
  EXPECT_EQ(taken(), "");
  ready({5, 3});
  EXPECT_EQ(taken(), "4-7: ready 1");
}

TEST_F(NoteGatheringTest, WaitsForNoRankThatHasJoined) {
  ready({4});
  ready({7});
  submit({4}, tensor("a"));
  join({6});
  EXPECT_EQ(taken(), "6: joined in 3");
  ready({5});
  EXPECT_EQ(taken(), "4-5: ready 1; 7: ready 1");
  submit({7}, tensor("a"));
  join({5});  // the last that "a" waited for
  EXPECT_EQ(taken(), "5: joined in 3; 4: a; 7: a");
  EXPECT_EQ(gathering.add({5}, Joined{3}, 0).code(), Code::kProtocol);
  gathering.end_join();
  ready({4}, 2);
  ready({7}, 2);
  EXPECT_EQ(taken(), "");
  ready({5, 2}, 2);
  EXPECT_EQ(taken(), "4-7: ready 2");
}

TEST_F(NoteGatheringTest, RefusesWhatARankHasSaidAlready) {
  ready({6, 2});
  EXPECT_EQ(gathering.add({7}, BucketReady{1}, 1).code(), Code::kProtocol);
  submit({5}, tensor("a"));
  EXPECT_EQ(gathering.add({5}, SubmitByName{tensor("a", 2)}, 0).code(), Code::kProtocol);
}

}  // namespace
}  // namespace elastic::coordinator
