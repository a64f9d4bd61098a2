#include "collectives/transport/frame.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/backend_names.hpp"
#include "base/gathered_calls.hpp"
#include "base/hash.hpp"

namespace elastic::transport {
namespace {

using Bytes = std::array<std::byte, FrameHeader::kBytes>;

FrameHeader sample() {
  FrameHeader header;
  header.kind = FrameKind::kData;
  header.tag = {0x1122334455667788, 0x99aabbccddeeff00, OpTag::kAbortOperation};
  header.message = 0x01020304;
  header.length = 4096;
  header.offset = 0x123456789a;
  header.fingerprint = {2, 7, 3, 5, 0xdeadbeef, 0xfeedfacecafef00d};
  header.payload_checksum = 0xa1b2c3d4;
  return header;
}

Bytes encoded(const FrameHeader& header) {
  Bytes bytes{};
  encode(header, bytes);
  return bytes;
}

TEST(Frame, ComesBackAsItWentOut) {
  const FrameHeader header = sample();
  const auto back = decode(encoded(header));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back.value().kind, header.kind);
  EXPECT_EQ(back.value().tag, header.tag);
  EXPECT_EQ(back.value().message, header.message);
  EXPECT_EQ(back.value().length, header.length);
  EXPECT_EQ(back.value().offset, header.offset);
  EXPECT_EQ(back.value().fingerprint, header.fingerprint);
  EXPECT_EQ(back.value().payload_checksum, header.payload_checksum);
}

TEST(Frame, IsLittleEndianWithTheMagicInFront) {
  const Bytes bytes = encoded(sample());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "EFL2");
  EXPECT_EQ(bytes[8], std::byte{0x88});
  EXPECT_EQ(bytes[15], std::byte{0x11});
}

TEST(Frame, EverySingleFlippedBitIsNoticed) {
  const Bytes good = encoded(sample());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto result = decode(bad);
    ASSERT_FALSE(result.ok()) << "bit " << bit;
    ASSERT_EQ(result.status().code(), Code::kProtocol);
  }
}

TEST(Frame, RefusesWhatTheProtocolDoesNotAllow) {
  FrameHeader header = sample();
  header.length = FrameHeader::kMaxPayload;
  EXPECT_TRUE(decode(encoded(header)).ok());
  header.length = FrameHeader::kMaxPayload + 1;
  EXPECT_EQ(decode(encoded(header)).status().code(), Code::kProtocol);
  header = sample();
  header.kind = static_cast<FrameKind>(9);
  EXPECT_EQ(decode(encoded(header)).status().code(), Code::kProtocol);
}

TEST(Frame, RandomBytesAreNoFrame) {
  constexpr std::uint64_t kSeed = 20;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 10000; ++round) {
    Bytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xffU);
    ASSERT_FALSE(decode(bytes).ok()) << "seed " << kSeed << " round " << round;
  }
}

TEST(Checksum, IsTheSameInPiecesAndNeverNone) {
  std::vector<std::byte> payload(1000);
  PayloadChecksum pieces;
  for (std::size_t round = 0; round < 1000; ++round) {
    payload[round] = static_cast<std::byte>(round & 0xffU);
    pieces.reset();
    pieces.add(std::span(payload).first(round));
    pieces.add(std::span(payload).subspan(round));
    ASSERT_EQ(pieces.value(), checksum(payload));
    ASSERT_NE(pieces.value(), 0U);
  }
}

TEST(OpTag, OrdersByGenerationThenPositionThenPhase) {
  EXPECT_LT((OpTag{1, 9, 2}), (OpTag{2, 0, 0}));
  EXPECT_LT((OpTag{1, 1, 2}), (OpTag{1, 2, 0}));
  EXPECT_LT((OpTag{1, 1, OpTag::kBeforeOperation}), (OpTag{1, 1, OpTag::kNormal}));
  EXPECT_LT((OpTag{1, 1, OpTag::kNormal}), (OpTag{1, 1, OpTag::kAbortOperation}));
}

TEST(Fingerprint, SaysWhatWasCalled) {
  EXPECT_EQ(describe({1, 2, 0, 1, 0, 1024}), "allreduce of 1024 f32, sum");
  EXPECT_EQ(describe(performed_by("native", {1, 2, 0, 1, 0, 1024})), "allreduce of 1024 f32, sum");
  EXPECT_EQ(describe(performed_by("gloo", {1, 2, 0, 1, 0, 1024})),
            "allreduce of 1024 f32, sum, by gloo");
  EXPECT_EQ(describe({2, 7, 0, 1, 2, 16}), "broadcast of 16 i64 from rank 2");
  EXPECT_EQ(describe({2, 7, 0, 1, Fingerprint::root_worker(77), 16}),
            "broadcast of 16 i64 from the worker of rank 77");
  EXPECT_EQ(describe({2, 7, 0, 1, Fingerprint::lost_worker(~0ULL), 16}),
            "broadcast of 16 i64 from a worker that is no member");
  EXPECT_EQ(describe({1, 2, 0, 5, 77, 4810}), "allreduce of 5 tensors, 4810 elements, sum");
  EXPECT_EQ(describe({1, 2, 1, 255, 77, 4810}),
            "allreduce of 255 or more tensors, 4810 elements, average");
  EXPECT_EQ(describe({3, 1, 0, 1, 0, 0}), "allgather of bf16");
  EXPECT_EQ(describe({4, 3, 2, 1, 0, 8}), "reduce_scatter of 8 f64, min");
  EXPECT_EQ(describe({4, 3, Fingerprint::kGrouped | 2, 5, 77, 8}),
            "grouped_reduce_scatter of 5 tensors, 8 elements, min");
  EXPECT_EQ(describe({4, 3, Fingerprint::kGrouped, 1, 77, 8}),
            "grouped_reduce_scatter of 1 tensor, 8 elements, sum");
  EXPECT_EQ(describe({3, 3, Fingerprint::kGrouped, 255, 77, 0}),
            "grouped_allgather of 255 or more tensors");
  EXPECT_EQ(describe({1, 0, 0x81, 1, 77, 8}), "allreduce of 8 f16, average, cast");
  EXPECT_EQ(describe({11, 2, 0, 1, 0, 4}), "alltoall of 4 f32 for each rank");
  EXPECT_EQ(describe({11, 2, Fingerprint::kRagged, 1, 99, 0}), "alltoall of f32");
  EXPECT_EQ(describe({12, 2, 0, 1, 3, 99}), "gather of f32 to rank 3");
  EXPECT_EQ(describe({13, 7, 0, 1, 1, 0}), "scatter of i64 from rank 1");
  EXPECT_EQ(describe({14, 3, 3, 1, Fingerprint::root_worker(5), 8}),
            "reduce of 8 f64 to the worker of rank 5, max");
  EXPECT_EQ(describe({15, 3, 0, 1, 0, 8}), "scan of 8 f64, sum");
  EXPECT_EQ(describe({15, 3, 4, 1, Fingerprint::kExclusive, 8}), "exscan of 8 f64, product");
  EXPECT_EQ(describe({8, 5, 0, 1, 0, 0}), "elastic::run, which synchronises the state");
  EXPECT_EQ(describe({1, 4, 5, 1, 0, 8}), "allreduce of 8 i8, bit and");
  EXPECT_EQ(describe({4, 2, 10, 1, 0, 8}), "reduce_scatter of 8 f32, logical xor");
  EXPECT_EQ(describe({1, 2, 11, 1, 0, 8}), "allreduce of 8 f32, adasum");
  EXPECT_EQ(describe({1, 2, 12, 1, 0, 8}), "allreduce of 8 f32, hierarchical adasum");
  EXPECT_EQ(describe({1, 2, 0, 1, 77, 8}), "allreduce of 8 f32, sum, scaled");
  EXPECT_EQ(describe({5, 0, 0, 1, 0, 0}), "barrier");
  EXPECT_EQ(describe({5, 0, 0, 1, Fingerprint::lost_worker(7), 0}),
            "a call whose root is a worker that is no member");
  EXPECT_EQ(describe({5, 0, 0, 1, 1, 0}), "a call whose root is gone");
}

TEST(Fingerprint, SaysWhichCallAnAllgatherIsFor) {
  for (const GatheredCall* const call : {&kLocationCall, &kSparseCall, &kSparseRowsCall}) {
    const auto row = static_cast<std::uint32_t>(hash_of(std::as_bytes(std::span(call->row))));
    EXPECT_EQ(describe({3, 5, 0, 1, row, 0}), call->name);
    EXPECT_EQ(describe_kind(Fingerprint{3, 5, 0, 1, row, 0}), call->name);
    EXPECT_EQ(describe({3, 5, 0, 1, row + 1, 0}), "allgather of u8");
  }
}

TEST(Fingerprint, SaysWhichBackend) {
  for (const std::string_view name : kBackendNames) {
    const std::string said = describe(performed_by(std::string(name), {1, 2, 0, 1, 0, 1024}));
    const bool first = name == kBackendNames.front();
    EXPECT_EQ(said, "allreduce of 1024 f32, sum" + (first ? "" : ", by " + std::string(name)));
  }
}

TEST(Fingerprint, UnknownValuesPrintAsNumbers) {
  for (int value = 0; value < 256; ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    EXPECT_FALSE(describe({byte, byte, byte, byte, 1, 2}).empty());
  }
  EXPECT_NE(describe({1, 200, 100, 1, 0, 3}).find("200"), std::string::npos);
}

}  // namespace
}  // namespace elastic::transport
