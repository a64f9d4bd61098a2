#include "collectives/backend/spare_buffer.hpp"

#include <cstddef>
#include <optional>

#include <gtest/gtest.h>

namespace elastic::collectives {
namespace {

using Loan = SpareBuffer::Loan;

/// The address of a loan of so many bytes.
std::byte* lent(SpareBuffer& spare, std::size_t bytes) {
  Loan loan(spare);
  loan.buffer().resize(bytes);
  return loan.buffer().data();
}

TEST(SpareBuffer, IsLentAgain) {
  SpareBuffer spare;
  std::byte* const first = lent(spare, 1000);
  EXPECT_EQ(lent(spare, 1000), first);
  EXPECT_EQ(lent(spare, 10), first);
}

TEST(SpareBuffer, LendsAnotherMeanwhileAndKeepsTheLarger) {
  SpareBuffer spare;
  std::byte* const large = lent(spare, 100'000);
  for (const bool small_first : {true, false}) {
    std::optional<Loan> one(std::in_place, spare);
    std::optional<Loan> other(std::in_place, spare);
    EXPECT_EQ(one->buffer().data(), large);
    other->buffer().resize(1000);
    EXPECT_NE(other->buffer().data(), large);
    (small_first ? other : one).reset();
    one.reset();
    other.reset();
    EXPECT_EQ(Loan(spare).buffer().data(), large);
  }
}

}  // namespace
}  // namespace elastic::collectives
