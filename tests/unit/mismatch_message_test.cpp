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

TEST(MismatchMessage, SaysSoWhenTheCallsLookAlike) {
  const std::string message = mismatch_message({{print(5, 1), ""}, {print(5, 2), ""}});
  if (describe(print(5, 1)) == describe(print(5, 2))) {
    EXPECT_TRUE(names(message, "another root or other shapes")) << message;
  }
}

TEST(MismatchMessage, TakesTheLeastText) {
  EXPECT_EQ(mismatch_message({{print(5), "b"}, {print(6), ""}, {print(5), "a"}}), "a");
}

}  // namespace
}  // namespace elastic::collectives
