// The parts of sparse_allreduce without I/O: what the members offer, the rows that they gather, the
// dense tensors, and the choice between both.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/kernels/reduce.hpp"
#include "runtime/dense_rows.hpp"
#include "runtime/sparse_blocks.hpp"
#include "runtime/sparse_form.hpp"
#include "runtime/sparse_offer.hpp"

namespace elastic::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Rows of one member, as bytes of any element type.
struct OneGiven {
  std::vector<std::int64_t> indices;
  std::vector<std::byte> values;
  DType dtype;
  std::size_t width;
  std::size_t rows;

  SparseRowsView view() const {
    return {indices, {values.data(), indices.size() * width, dtype, {}}, width, rows};
  }
};

/// The bits of a small whole number.
std::vector<std::byte> element_of(DType dtype, int value) {
  std::vector<std::byte> bytes(size_of(dtype));
  const auto put = [&](auto number) { std::memcpy(bytes.data(), &number, sizeof(number)); };
  switch (dtype) {
    case DType::kF16:
      put(float16(static_cast<float>(value)));
      break;
    case DType::kBF16:
      put(bfloat16(static_cast<float>(value)));
      break;
    case DType::kF32:
      put(static_cast<float>(value));
      break;
    case DType::kF64:
      put(static_cast<double>(value));
      break;
    case DType::kBool:
      put(value != 0);
      break;
    default:
      std::memcpy(bytes.data(), &value, std::min(bytes.size(), sizeof(value)));
      break;
  }
  return bytes;
}

OneGiven some(std::mt19937_64& random, DType dtype, std::size_t width, std::size_t rows) {
  OneGiven given{{}, {}, dtype, width, rows};
  const std::size_t count = random() % 4 == 0 ? 0 : random() % (2 * rows);
  for (std::size_t i = 0; i < count; ++i) {
    given.indices.push_back(static_cast<std::int64_t>(random() % rows));
    for (std::size_t at = 0; at < width; ++at) {
      const auto element = element_of(dtype, static_cast<int>(random() % 3));
      given.values.insert(given.values.end(), element.begin(), element.end());
    }
  }
  return given;
}

/// The rows of all, added one by one in rank order.
SparseRows modelled(const std::vector<OneGiven>& all) {
  const std::size_t row_bytes = all.front().width * size_of(all.front().dtype);
  std::map<std::int64_t, std::vector<std::byte>> sums;
  for (const OneGiven& given : all) {
    for (std::size_t row = 0; row < given.indices.size(); ++row) {
      const std::byte* const from = given.values.data() + row * row_bytes;
      const auto [sum, is_new] = sums.try_emplace(given.indices[row], from, from + row_bytes);
      if (is_new) continue;
      std::byte* const into = sum->second.data();
      kernels::reduce(given.dtype, ReduceOp::kSum)(into, into, from, given.width);
    }
  }
  SparseRows result;
  for (const auto& [index, sum] : sums) {
    result.indices.push_back(index);
    result.values.insert(result.values.end(), sum.begin(), sum.end());
  }
  return result;
}

/// As the members gather them, one tensor or two in a block.
std::vector<SparseRows> gathered(const std::vector<std::vector<OneGiven>>& by_rank) {
  std::vector<std::byte> all;
  std::vector<std::size_t> sizes;
  for (const auto& tensors : by_rank) {
    std::vector<SparseRowsView> views;
    for (const OneGiven& each : tensors) views.push_back(each.view());
    const SparseOffers offers = offers_of(views, ReduceOp::kSum, SparseForm::kChosen);
    const std::vector<std::byte> block = pack_rows(offers, views);
    EXPECT_EQ(block.size(), packed_bytes(offers));
    all.insert(all.end(), block.begin(), block.end());
    sizes.push_back(block.size());
  }
  const SparseBlocks blocks(all, sizes);
  EXPECT_TRUE(check_offers(blocks.offers()).ok());
  return blocks.sums();
}

SparseRows dense(const std::vector<OneGiven>& all) {
  DenseRows sum(all.front().view());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    DenseRows next(all[rank].view());
    auto* const into = static_cast<std::byte*>(sum.view().data);
    kernels::reduce(all.front().dtype, ReduceOp::kSum)(
        into, into, static_cast<const std::byte*>(next.view().data), sum.view().count);
  }
  return sum.marked();
}

void expect_same(const SparseRows& a, const SparseRows& b) {
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_EQ(a.values, b.values);
}

TEST(SparseRows, GatheredAndDenseSumsAreThoseOfAModel) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 40; ++run) {
    for (const DType dtype : kDTypes) {
      const std::size_t width = 1 + random() % 5;
      const std::size_t rows = 1 + random() % 30;
      std::vector<OneGiven> first;
      std::vector<OneGiven> second;
      std::vector<std::vector<OneGiven>> both;
      const std::size_t members = 1 + random() % 4;
      for (std::size_t rank = 0; rank < members; ++rank) {
        first.push_back(some(random, dtype, width, rows));
        second.push_back(some(random, DType::kI16, 3, 5));
        both.push_back({first.back(), second.back()});
      }
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(dtype)) + ", run " +
                   std::to_string(run));
      const std::vector<SparseRows> sums = gathered(both);
      ASSERT_EQ(sums.size(), 2U);
      expect_same(sums[0], modelled(first));
      expect_same(sums[1], modelled(second));
      expect_same(dense(first), modelled(first));
    }
  }
}

TEST(SparseRows, ARowOfZerosIsThere) {
  const OneGiven given{{3, 3}, std::vector<std::byte>(2 * 4), DType::kF32, 1, 5};
  const OneGiven none{{}, {}, DType::kF32, 1, 5};
  const SparseRows sums = dense({given, none});
  EXPECT_EQ(sums.indices, std::vector<std::int64_t>{3});
  EXPECT_EQ(sums.values, std::vector<std::byte>(4));
  expect_same(gathered({{given}, {none}}).front(), sums);
}

TEST(SparseRows, SmallMarksLastAmongAsManyMembersAsAreAllowed) {
  for (const DType dtype : {DType::kI8, DType::kU8, DType::kBool, DType::kF16, DType::kBF16}) {
    const OneGiven given{{0}, element_of(dtype, 0), dtype, 1, 2};
    EXPECT_EQ(dense(std::vector<OneGiven>(127, given)).indices, std::vector<std::int64_t>{0});
  }
  const OneGiven floats{{0}, element_of(DType::kF16, 0), DType::kF16, 1, 2};
  EXPECT_EQ(dense(std::vector<OneGiven>(4096, floats)).indices, std::vector<std::int64_t>{0});
}

/// The offers of `members`, each of which gives `count` of 1000 rows of 16 floats.
std::vector<SparseOffers> offered(std::size_t members, std::uint64_t count,
                                  SparseForm form = SparseForm::kChosen,
                                  DType dtype = DType::kF32) {
  SparseOffer offer;
  offer.width = 16;
  offer.rows = 1000;
  offer.count = count;
  offer.dtype = static_cast<std::uint32_t>(dtype);
  offer.form = static_cast<std::uint8_t>(form);
  return std::vector<SparseOffers>(members, SparseOffers{offer});
}

TEST(SparseForm, IsDenseFromSomeNumberOfRowsOn) {
  for (const std::size_t members : {2U, 4U, 64U}) {
    // A row of a dense tensor has its mark, and one that is gathered its index.
    const double dense = 1000 * 17 * 4;
    const double row = 16 * 4 + 8;
    const double most = kGatheredForDense * dense / row / static_cast<double>(members);
    EXPECT_FALSE(goes_dense(offered(members, 0)));
    EXPECT_FALSE(goes_dense(offered(members, static_cast<std::uint64_t>(most))));
    EXPECT_TRUE(goes_dense(offered(members, static_cast<std::uint64_t>(most) + 1)));
  }
  EXPECT_FALSE(goes_dense(offered(1, 100'000))) << "one member has nothing to send";
}

TEST(SparseForm, IsTheOneThatTheProgramAsksFor) {
  EXPECT_TRUE(goes_dense(offered(4, 0, SparseForm::kDense)));
  EXPECT_TRUE(goes_dense(offered(1, 0, SparseForm::kDense)));
  EXPECT_FALSE(goes_dense(offered(4, 1000, SparseForm::kGathered)));
}

TEST(SparseForm, IsGatheredWhereSmallMarksWouldWrapAround) {
  for (const auto form : {SparseForm::kChosen, SparseForm::kDense}) {
    EXPECT_TRUE(goes_dense(offered(127, 1000, form, DType::kI8)));
    EXPECT_FALSE(goes_dense(offered(128, 1000, form, DType::kI8)));
    EXPECT_FALSE(goes_dense(offered(128, 1000, form, DType::kU8)));
    EXPECT_TRUE(goes_dense(offered(128, 1000, form, DType::kI16)));
  }
}

TEST(SparseForm, SizesThatNoIntegerCountsAreGathered) {
  auto offers = offered(2, 5);
  for (auto& of_rank : offers) of_rank.front().rows = ~std::uint64_t{0};
  EXPECT_FALSE(goes_dense(offers));
  for (auto& of_rank : offers) of_rank.front().form = static_cast<std::uint8_t>(SparseForm::kDense);
  const Status status = check_offers(offers);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("more bytes than memory can have"));
}

TEST(SparseOffers, NameTheFirstDifferenceAndItsRank) {
  const auto fails = [](const auto& change, const std::string& text) {
    auto offers = offered(3, 7);
    for (auto& of_rank : offers) of_rank.push_back(of_rank.front());
    change(offers[2].back());
    const Status status = check_offers(offers);
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(
        status.message(),
        AllOf(HasSubstr("rank 0 called sparse_allreduce on 2 tensors, of which number 1 has "
                        "1000 rows of 16 f32, sum, rank 2 called"),
              HasSubstr("on 2 tensors, of which number 1 has " + text + ": give rows")));
  };
  fails([](SparseOffer& offer) { offer.rows = 9; }, "9 rows of 16 f32, sum");
  fails([](SparseOffer& offer) { offer.width = 9; }, "1000 rows of 9 f32, sum");
  fails([](SparseOffer& offer) { offer.dtype = 3; }, "1000 rows of 16 f64, sum");
  fails([](SparseOffer& offer) { offer.op = 1; }, "1000 rows of 16 f32, average");
  fails([](SparseOffer& offer) { offer.form = 1; }, "1000 rows of 16 f32, sum, gathered");
  auto counts = offered(3, 7);
  counts[1].front().count = 100;
  EXPECT_TRUE(check_offers(counts).ok()) << "members may give different numbers of rows";
}

TEST(SparseOffers, NameTheFirstIndexThatIsNoRow) {
  const std::vector<std::int64_t> right{0, 4};
  const std::vector<std::int64_t> wrong{4, -1, 5};
  const std::vector<float> values(3);
  const SparseRowsView rows{right, {values.data(), 2, DType::kF32, {}}, 1, 5};
  const SparseRowsView bad{wrong, {values.data(), 3, DType::kF32, {}}, 1, 5};
  const SparseRowsView tensors[] = {rows, bad};
  const SparseRowsView others[] = {rows, rows};
  const SparseOffers by_rank[] = {offers_of(others, ReduceOp::kSum, SparseForm::kChosen),
                                  offers_of(tensors, ReduceOp::kSum, SparseForm::kChosen)};
  const Status status = check_offers(by_rank);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("index -1 of rank 1, at place 1, is no row; tensor 1 has 5"));
}

}  // namespace
}  // namespace elastic::runtime
