#include "coordinator/negotiation_note.hpp"

#include <limits>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/negotiation.hpp"

namespace elastic::coordinator {
namespace {

const TensorRequest kConv{"conv1", kAllreduceRequest, ReduceOp::kAverage, {{DType::kF32, 300}}};
const TensorRequest kGroup{"group", 7, ReduceOp::kMax, {{DType::kI64, 0}, {DType::kF16, 1u << 30}}};

const TensorRequest kScaled{
    "scaled", kAllreduceRequest, ReduceOp::kSum, {{DType::kF32, 3}}, Scale(0.25, -3)};

std::vector<NoteItem> one_of_each() {
  return {
      SubmitByName{kGroup},
      BucketReady{std::numeric_limits<std::uint64_t>::max()},
      Dissolve{127},
      Define{128, {kConv, kGroup, kScaled}},
      coordinator::Run{1},
      Mismatch{"conv1", "rank 0 said this; rank 1 said that"},
      Blocked{},
      SubmitToGroup{{{"g", kBroadcastRequest, ReduceOp::kSum, {{DType::kF64, 7}}}, {0, 3, 300}}},
      RunInGroup{{{"h", kBarrierRequest, ReduceOp::kSum, {{DType::kU8, 0}}}, {2}}, "why"},
      Joined{300},
      EndJoin{129}};
}

std::vector<std::byte> encode(const std::vector<NoteItem>& items) {
  NoteWriter writer;
  for (const NoteItem& item : items) writer.add(item);
  auto notes = writer.take();
  EXPECT_EQ(notes.size(), 1u);
  return notes.at(0);
}

TEST(NegotiationNote, ComesBackAsItWasWritten) {
  auto items = read_note(encode(one_of_each()));
  ASSERT_TRUE(items.ok()) << items.status().message();
  EXPECT_EQ(items.value(), one_of_each());
}

TEST(NegotiationNote, IsSmallForABucketThatIsKnown) {
  EXPECT_EQ(encode({BucketReady{5}}).size(), 3u);
  EXPECT_EQ(encode({coordinator::Run{1}, coordinator::Run{2}, coordinator::Run{200}}).size(), 8u);
}

TEST(NegotiationNote, IsRefusedWithAScaleThatNoCallHas) {
  for (const TensorRequest& request :
       {TensorRequest{"x", 0, ReduceOp::kSum, {{DType::kI32, 1}}, Scale(2, 1)},
        TensorRequest{"x",
                      0,
                      ReduceOp::kSum,
                      {{DType::kF32, 1}},
                      Scale(std::numeric_limits<double>::quiet_NaN(), 1)}}) {
    EXPECT_FALSE(read_note(encode({SubmitByName{request}})).ok());
  }
}

TEST(NegotiationNote, IsRefusedWhenCutOff) {
  for (const NoteItem& item : one_of_each()) {
    const auto note = encode({item});
    for (std::size_t size = 0; size < note.size(); ++size) {
      if (size == 1) continue;  // a note without items
      const auto items = read_note(std::span(note).first(size));
      EXPECT_FALSE(items.ok()) << "type " << item.index() << " cut to " << size;
      EXPECT_EQ(items.status().code(), Code::kProtocol);
    }
  }
}

TEST(NegotiationNote, IsRefusedWithUnknownValues) {
  const auto refused = [](std::vector<unsigned char> bytes) {
    return !read_note(std::as_bytes(std::span(bytes))).ok();
  };
  EXPECT_TRUE(refused({1, 4, 1}));                                               // version
  EXPECT_TRUE(refused({4, 11, 1}));                                              // type
  EXPECT_TRUE(refused({4, 1, 0}));                                               // bucket 0
  EXPECT_TRUE(refused({4, 3, 1, 0}));                                            // empty bucket
  EXPECT_FALSE(refused({4, 0, 1, 'a', 0, 12, 1, 2, 1}));                         // op, the last
  EXPECT_TRUE(refused({4, 0, 1, 'a', 0, 13, 1, 2, 1}));                          // op
  EXPECT_TRUE(refused({4, 0, 1, 'a', 0, 5, 1, 2, 1}));                           // bits of floats
  EXPECT_TRUE(refused({4, 0, 1, 'a', 0, 11, 1, 7, 1}));                          // i64's Adasum
  EXPECT_FALSE(refused({4, 0, 1, 'a', 0, 0, 1, 12, 1}));                         // bool, the last
  EXPECT_TRUE(refused({4, 0, 1, 'a', 0, 0, 1, 13, 1}));                          // dtype
  EXPECT_TRUE(refused({4, 0, 1, 'a', 0, 1, 1, 12, 1}));                          // bools' average
  EXPECT_TRUE(refused({4, 0, 0, 0, 0, 1, 2, 1}));                                // no name
  EXPECT_TRUE(refused({4, 0, 1, 'a', 0, 0, 0}));                                 // no tensors
  EXPECT_TRUE(refused({4, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2}));  // 65 bits
  EXPECT_FALSE(refused({4, 0, 1, 'a', 0, 0, 1, 2, 1}));
  EXPECT_FALSE(refused({4, 7, 1, 'a', 0, 0, 1, 2, 1, 2, 1, 4}));  // ranks 0 and 4
  EXPECT_TRUE(refused({4, 7, 1, 'a', 0, 0, 1, 2, 1, 0}));         // no ranks
  EXPECT_TRUE(refused({4, 7, 1, 'a', 0, 0, 1, 2, 1, 2, 1, 0}));   // a rank twice
}

TEST(NegotiationNote, IsSplitBeforeItIsTooLargeForALink) {
  NoteWriter writer;
  std::vector<NoteItem> sent;
  for (int i = 0; i < 1000; ++i) {
    sent.push_back(SubmitByName{
        {std::string(4000, 'x') + std::to_string(i), 0, ReduceOp::kSum, {{DType::kF32, 1}}}});
    writer.add(sent.back());
  }
  const auto notes = writer.take();
  EXPECT_GT(notes.size(), 1u);
  std::vector<NoteItem> received;
  for (const auto& note : notes) {
    EXPECT_LE(note.size(), NoteWriter::kMaxNoteBytes);
    auto items = read_note(note);
    ASSERT_TRUE(items.ok()) << items.status().message();
    received.insert(received.end(), items.value().begin(), items.value().end());
  }
  EXPECT_EQ(received, sent);
}

std::vector<std::byte> random_bytes(std::mt19937& random) {
  std::vector<std::byte> bytes(random() % 64);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 256);
  if (!bytes.empty()) bytes[0] = std::byte{4};
  // Small values are more often meaningful.
  if (random() % 2 == 0) {
    for (std::byte& byte : bytes)
      byte = std::byte{std::to_integer<unsigned char>(byte)} & std::byte{7};
    if (!bytes.empty()) bytes[0] = std::byte{4};
  }
  return bytes;
}

TEST(NegotiationNote, RandomBytesNeverDoHarm) {
  constexpr unsigned kSeed = 20240611;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  std::size_t accepted = 0;
  for (int i = 0; i < 200000; ++i) {
    auto items = read_note(random_bytes(random));
    if (!items.ok()) {
      EXPECT_FALSE(items.status().message().empty());
      continue;
    }
    ++accepted;
    if (!items.value().empty()) {  // what is accepted can be written again
      EXPECT_EQ(read_note(encode(items.value())).value(), items.value());
    }
  }
  EXPECT_GT(accepted, 0u);
}

// Flips bits of meaningful notes and feeds them to all roles, in states with something under way.
TEST(NegotiationNote, DamagedNotesNeverDoHarm) {
  constexpr unsigned kSeed = 42;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const std::vector<std::vector<std::byte>> notes = {
      encode(one_of_each()),
      encode({SubmitByName{kConv}, SubmitByName{kGroup}}),
      encode({BucketReady{1}, BucketReady{2}}),
      encode({Define{1, {kConv, kGroup}}, coordinator::Run{1}}),
      encode({coordinator::Run{1}, Dissolve{1}}),
      encode({Mismatch{"conv1", "text"}}),
      encode({Joined{7}}),
      encode({EndJoin{3}})};
  for (int round = 0; round < 5000; ++round) {
    Negotiator negotiator(1000);
    // The leader, a follower, and one that gathers the notes of the rank behind it.
    const int rank = static_cast<int>(random() % 3);
    negotiator.restart(rank, 4, rank == 2 ? 2 : 1);
    std::size_t ordered = 0;
    for (int i = 0; i < 12; ++i) {
      if (random() % 3 == 0) {
        // A name that is under way already is refused, which is fine here.
        const Status submitted = negotiator.submit(random() % 2 == 0 ? kConv : kGroup);
        EXPECT_TRUE(submitted.ok() || submitted.code() == Code::kInvalidArgument);
      }
      if (random() % 4 == 0) negotiator.flush();
      if (random() % 9 == 0) (void)negotiator.join(7);
      auto note = notes[random() % notes.size()];
      if (random() % 2 == 0) {
        note[random() % note.size()] ^= static_cast<std::byte>(1u << random() % 8);
      }
      const bool from_below = rank == 0 || (rank == 2 && random() % 2 == 0);
      const int from = from_below ? rank + 1 : 0;
      const Status status = negotiator.on_note({from}, note);
      EXPECT_TRUE(status.ok() || status.code() == Code::kProtocol);
      for (const OrderItem& order : negotiator.take_orders()) {
        ++ordered;
        EXPECT_TRUE(negotiator.completed(order).ok());
      }
      negotiator.take_outgoing();
    }
    EXPECT_LE(ordered, 24u);
  }
}

}  // namespace
}  // namespace elastic::coordinator
