#include "collectives/kernels/neutral.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/reduce_ops.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::kernels {
namespace {

using Bytes = std::vector<std::byte>;

/// Any element of the type; logical operations give 0 or 1, of which these are.
Bytes elements(DType dtype, ReduceOp op, std::size_t count) {
  Bytes made(count * size_of(dtype));
  std::mt19937 random(3);
  const bool is_number = is_float(dtype);
  for (std::size_t i = 0; i < made.size(); ++i) {
    // Small numbers of either sign, in floats whole ones.
    made[i] = is_number ? std::byte{0} : static_cast<std::byte>(random());
    if (dtype == DType::kBool) made[i] &= std::byte{1};
  }
  if (is_number || is_logical(op)) fill_neutral(dtype, ReduceOp::kProduct, made.data(), count);
  return made;
}

TEST(Neutral, ChangesNothing) {
  constexpr std::size_t kCount = 37;
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kReduceOps) {
      if (!refusal(op, dtype).empty() || !is_elementwise(op)) continue;
      const Bytes before = elements(dtype, op, kCount);
      Bytes neutral(before.size());
      fill_neutral(dtype, op, neutral.data(), kCount);
      Bytes after(before.size());
      reduce(dtype, op)(after.data(), neutral.data(), before.data(), kCount);
      EXPECT_TRUE(after == before) << dtype_name(dtype) << ", " << reduce_op_name(op);
      reduce(dtype, op)(after.data(), before.data(), neutral.data(), kCount);
      EXPECT_TRUE(after == before) << dtype_name(dtype) << ", " << reduce_op_name(op);
    }
  }
}

}  // namespace
}  // namespace elastic::kernels
