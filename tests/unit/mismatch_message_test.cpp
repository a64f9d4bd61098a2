#include <gtest/gtest.h>

#include "collectives/backend/native/agreement.hpp"

namespace elastic::collectives {
namespace {

transport::Fingerprint print(std::uint64_t count, std::uint32_t detail = 0) {
  transport::Fingerprint made;
  made.kind = static_cast<std::uint8_t>(Kind::kAllreduce);
  made.dtype = static_cast<std::uint8_t>(DType::kF32);
  made.count = count;
  made.detail = detail;
  return made;
}

bool names(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(MismatchMessage, NamesTwoRanksAndTheirCalls) {
  const std::string message = mismatch_message({{print(5), ""}, {print(5), ""}, {print(6), ""}});
  EXPECT_TRUE(names(message, "rank 0 called " + describe(print(5)))) << message;
  EXPECT_TRUE(names(message, "rank 2 called " + describe(print(6)))) << message;
}

TEST(MismatchMessage, SaysWhatCallsThatLookAlikeDifferIn) {
  const auto message = [](Kind kind) {
    std::vector<Statement> statements{{print(5, 1), ""}, {print(5, 2), ""}};
    for (Statement& each : statements) each.called.kind = static_cast<std::uint8_t>(kind);
    return mismatch_message(statements);
  };
  EXPECT_TRUE(names(message(Kind::kAllreduce), "sum, scaled with other factors. All"));
  EXPECT_TRUE(names(message(Kind::kAllgather), "f32 with blocks of other shapes. All"));
  EXPECT_TRUE(names(message(Kind::kAlltoall), "for each rank with blocks of other shapes. All"));
  EXPECT_FALSE(names(message(Kind::kBroadcast), "shapes")) << "the roots are in the message";
}

TEST(MismatchMessage, SaysThatGroupsOfOneSizeDiffer) {
  std::vector<Statement> statements{{print(5, 1), ""}, {print(5, 2), ""}};
  for (Statement& each : statements) each.called.tensors = 2;
  EXPECT_TRUE(names(mismatch_message(statements), "sum with other shapes or scales. All"));
}

TEST(MismatchMessage, SaysWhichRankHasFactors) {
  const std::string message = mismatch_message({{print(5), ""}, {print(5, 9), ""}});
  EXPECT_TRUE(names(message,
                    "rank 0 called allreduce of 5 f32, sum, but rank 1 called allreduce of 5 "
                    "f32, sum, scaled. All"))
      << message;
}

TEST(MismatchMessage, TakesTheLeastText) {
  EXPECT_EQ(mismatch_message({{print(5), "b"}, {print(5), ""}, {print(5), "a"}}), "a");
}

TEST(MismatchMessage, SaysWhatOthersCalledMeanwhile) {
  const std::string message = mismatch_message({{print(5), "b"}, {print(6), ""}, {print(5), "a"}});
  EXPECT_EQ(message, "a, while rank 1 called " + describe(print(6)) +
                         ". All ranks must make the same calls in the same order");
}

TEST(MismatchMessage, SaysThatARankHasCalledRun) {
  transport::Fingerprint run;
  run.kind = static_cast<std::uint8_t>(transport::OwnCall::kStateSize);
  const std::string again = "rank 1 has called elastic::run again";
  const std::string message = mismatch_message({{print(5), ""}, {run, again}, {print(5), ""}});
  EXPECT_EQ(message.find(again + ", while rank 0 called allreduce of 5 f32, sum. "), 0U) << message;
  EXPECT_TRUE(names(message, "All ranks enter elastic::run together")) << message;
  EXPECT_EQ(describe(run), "elastic::run, which synchronises the state");
}

/// A program's own calls of these kinds have other fingerprints.
TEST(MismatchMessage, TheLibrarysOwnCallsAreNoneOfTheProgram) {
  for (const auto call : {transport::OwnCall::kStateSize, transport::OwnCall::kStateHashes,
                          transport::OwnCall::kStepTimes}) {
    EXPECT_GT(static_cast<unsigned>(call), static_cast<unsigned>(Kind::kMismatch));
    EXPECT_LT(static_cast<unsigned>(call), static_cast<unsigned>(Kind::kAlltoall));
  }
}

}  // namespace
}  // namespace elastic::collectives
