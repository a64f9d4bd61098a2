// The names of calls for users, in place of those by which the coordinator knows them.
#include "coordinator/group_names.hpp"

#include <gtest/gtest.h>

#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {
namespace {

TEST(GroupNamesTest, AreThoseOfTheProgramForUsers) {
  const std::string prefix = group_prefix("per host~0123abcd", 0x1234);
  EXPECT_EQ(user_name(name_in_group(prefix, "grad")), "'grad' of the group 'per host'");
  EXPECT_EQ(user_name(name_in_group(prefix, "#7")), "'#7' of the group 'per host'");
  EXPECT_EQ(user_name(name_in_group(prefix, 7)), "#7 of the group 'per host'");
  EXPECT_EQ(user_name("grad"), "'grad'");
  EXPECT_EQ(user_name(""), "''");
}

/// A rule is named by the program, and so is a call.
TEST(GroupNamesTest, MayHaveAnyCharacters) {
  const std::string mark = "a~b@/:#~01234567@8~0123abcd";
  EXPECT_EQ(user_name(name_in_group(group_prefix(mark, 1), "~x@/#1")),
            "'~x@/#1' of the group 'a~b@/:#~01234567@8'");
  for (const std::string name :
       {"a~", "~0123abcd@0000000000000001", "a~0123abcd@00000000000000g1/:x"})
    EXPECT_EQ(user_name(name), "'" + name + "'");
}

TEST(GroupNamesTest, OfMessagesHaveTheirTagAndNumber) {
  EXPECT_EQ(user_name(message_name(1, ~0ULL, "", -3, 2)),
            "#2 with tag -3 from worker 0000000000000001 to worker ffffffffffffffff");
  EXPECT_EQ(user_name(message_name(1, 2, "a, tag 1, #9~0123abcd", 5, 1)),
            "#1 with tag 5 from worker 0000000000000001 to worker 0000000000000002");
  EXPECT_EQ(user_name("message from home, tag 1, #1"), "'message from home, tag 1, #1'");
}

TEST(GroupNamesTest, CallsThatDifferInTheirNumberOnlyHaveOneRow) {
  const std::string prefix = group_prefix("per host~0123abcd", 0x1234);
  EXPECT_EQ(row_name(name_in_group(prefix, 7)), "group 'per host'");
  EXPECT_EQ(row_name(name_in_group(prefix, "grad#7")), "grad#7 of the group 'per host'");
  EXPECT_EQ(row_name(message_name(1, 2, "", -3, 2)),
            "message from 0000000000000001 to 0000000000000002, tag -3");
  EXPECT_EQ(row_name("grad#7"), "grad#7");
}

TEST(GroupNamesTest, GoWithTheKindOfTheCall) {
  const std::string prefix = group_prefix("odd~0123abcd", 1);
  EXPECT_EQ(describe_call(kAllreduceRequest, "grad"), "named allreduce 'grad'");
  EXPECT_EQ(describe_call(kExscanRequest, "x"), "named exscan 'x'");
  EXPECT_EQ(describe_call(kAlltoallRequest, name_in_group(prefix, "x")),
            "named alltoall 'x' of the group 'odd'");
  EXPECT_EQ(describe_call(kUnnamedRequest, name_in_group(prefix, 3)), "call #3 of the group 'odd'");
  EXPECT_EQ(describe_call(kMessageRequest, message_name(1, 2, "", 7, 1)),
            "message #1 with tag 7 from worker 0000000000000001 to worker 0000000000000002");
}

TEST(GroupNamesTest, CallsWhoseCountsMayDifferHaveNone) {
  const auto text = [](std::uint8_t kind) {
    return describe(TensorRequest{"x", kind, ReduceOp::kSum, {{DType::kF32, 0}}});
  };
  EXPECT_EQ(text(kAllgatherRequest), "allgather of f32");
  EXPECT_EQ(text(kSparseRequest), "sparse_allreduce");
  EXPECT_EQ(text(kAlltoallRequest), "alltoall of f32");
  EXPECT_EQ(text(kGatherRequest), "gather of f32");
  EXPECT_EQ(text(kScatterRequest), "scatter of f32");
  EXPECT_EQ(text(kBroadcastRequest), "broadcast of 0 f32");
  EXPECT_EQ(text(kExscanRequest), "exscan of 0 f32, sum");
}

}  // namespace
}  // namespace elastic::coordinator
