// A worker that makes collectives of every integer type and of bool, with random bits so that sums
// and products wrap around, and compares each result with what it computes element by element.
// Writes a hash over all results to <log>/<rank>, for the test to compare.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <elastic/elastic.hpp>

#include "integration/programs/check_program.hpp"
#include "tests/slowness.hpp"

namespace {

using elastic::DType;
using elastic::ReduceOp;
using elastic::TensorView;
using elastic::testing::fail;

static_assert(elastic::dtype_of<long long> == DType::kI64);
static_assert(elastic::dtype_of<unsigned long long> == DType::kU64);
static_assert(elastic::dtype_of<unsigned long> == elastic::dtype_of<std::uintptr_t>);
static_assert(!elastic::Element<char> && !elastic::Element<wchar_t>);

/// Sanitizers make the numbers themselves slow.
constexpr std::size_t kCounts[] = {0, 1, 7, 1003, elastic::kSlowness > 1 ? 20001 : 70001};

/// Elements of any type, bool included, which a vector does not hold as such.
template <typename T>
class Values {
 public:
  explicit Values(std::size_t count) : data_(new T[count]()), count_(count) {}
  std::span<T> span() const { return {data_.get(), count_}; }
  TensorView view() const { return elastic::view(span()); }

 private:
  std::unique_ptr<T[]> data_;
  std::size_t count_;
};

template <typename T>
Values<T> contribution(int rank, std::size_t count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rank) * 1000 + count);
  Values<T> values(count);
  for (T& value : values.span()) {
    const std::uint64_t bits = random();
    value = static_cast<T>(std::is_same_v<T, bool> ? bits % 2 : bits);
  }
  return values;
}

/// Unsigned arithmetic wraps around; for bools 1 + 1 is true again.
template <typename T>
T combined(ReduceOp op, T left, T right) {
  if (op == ReduceOp::kMin) return std::min(left, right);
  if (op == ReduceOp::kMax) return std::max(left, right);
  const auto a = static_cast<std::uint64_t>(left);
  const auto b = static_cast<std::uint64_t>(right);
  switch (op) {
    case ReduceOp::kBitAnd:
      return static_cast<T>(a & b);
    case ReduceOp::kBitOr:
      return static_cast<T>(a | b);
    case ReduceOp::kBitXor:
      return static_cast<T>(a ^ b);
    case ReduceOp::kLogicalAnd:
      return static_cast<T>(a != 0 && b != 0);
    case ReduceOp::kLogicalOr:
      return static_cast<T>(a != 0 || b != 0);
    case ReduceOp::kLogicalXor:
      return static_cast<T>((a != 0) != (b != 0));
    default:
      return static_cast<T>(op == ReduceOp::kProduct ? a * b : a + b);
  }
}

bool is_logical(ReduceOp op) {
  return op >= ReduceOp::kLogicalAnd && op <= ReduceOp::kLogicalXor;
}

template <typename T>
T averaged(T sum, int ranks) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(sum) / ranks);
  } else {
    return static_cast<T>(std::uint64_t{sum} / static_cast<std::uint64_t>(ranks));
  }
}

template <typename T>
Values<T> expected(ReduceOp op, int ranks, std::size_t count) {
  Values<T> result = contribution<T>(0, count);
  if (is_logical(op)) {
    for (T& value : result.span()) value = static_cast<T>(value != 0);
  }
  for (int rank = 1; rank < ranks; ++rank) {
    const Values<T> next = contribution<T>(rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      result.span()[i] = combined(op, result.span()[i], next.span()[i]);
    }
  }
  if (op == ReduceOp::kAverage) {
    for (T& value : result.span()) value = averaged(value, ranks);
  }
  return result;
}

template <typename T>
constexpr bool has(ReduceOp op) {
  if (op == ReduceOp::kAdasum || op == ReduceOp::kHierarchicalAdasum) return false;
  return !std::is_same_v<T, bool> || op != ReduceOp::kAverage;
}

template <typename... Types>
struct TypeList {};
using AllTypes =
    TypeList<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
             std::int64_t, std::uint64_t, long long, unsigned long long, bool>;

class Checks {
 public:
  explicit Checks(std::string folder)
      : folder_(std::move(folder)), rank_(elastic::rank()), size_(elastic::size()) {}

  void run() {
    each(AllTypes());
    together(AllTypes());
    refusals();
    elastic::testing::write_result(folder_, hash_);
  }

 private:
  template <typename... Types>
  void each(TypeList<Types...>) {
    (collectives<Types>(), ...);
  }

  template <typename T, typename Range>
  void check(const Range& is, std::span<const T> should, ReduceOp op, const char* what) {
    const bool same = std::equal(is.begin(), is.end(), should.begin(), should.end());
    if (!same) {
      fail(std::string(what) + ": op " + std::to_string(static_cast<int>(op)) + ", dtype " +
           std::to_string(static_cast<int>(elastic::dtype_of<T>)) + ", " +
           std::to_string(should.size()) + " elements");
    }
    for (const T value : is) hash_.add(&value, sizeof(value));
  }

  template <typename T>
  void collectives() {
    for (const std::size_t count : kCounts) {
      for (const ReduceOp op : elastic::kReduceOps) {
        if (!has<T>(op)) continue;
        allreduce<T>(op, count);
        reduce_scatter<T>(op, count);
      }
      moves<T>(count);
    }
    const T one = contribution<T>(rank_, 1).span()[0];
    const T most = expected<T>(ReduceOp::kMax, size_, 1).span()[0];
    if (elastic::allreduce(one, ReduceOp::kMax) != most) fail("allreduce of one number");
  }

  template <typename T>
  void allreduce(ReduceOp op, std::size_t count) {
    const Values<T> right = expected<T>(op, size_, count);
    const Values<T> mine = contribution<T>(rank_, count);
    const Values<T> out(count);
    elastic::allreduce(std::span<const T>(mine.span()), out.span(), op);
    check<T>(out.span(), right.span(), op, "allreduce out of place");
    const elastic::Allocation memory = elastic::allocate((count + 1) * sizeof(T));
    auto* const off = static_cast<std::byte*>(memory.data()) + 1;  // at no boundary of elements
    if (count > 0) std::memcpy(off, mine.span().data(), count * sizeof(T));
    elastic::allreduce(TensorView{off, count, elastic::dtype_of<T>, {}}, op);
    if (count > 0) std::memcpy(out.span().data(), off, count * sizeof(T));
    check<T>(out.span(), right.span(), op, "allreduce in place, unaligned");
  }

  template <typename T>
  void reduce_scatter(ReduceOp op, std::size_t count) {
    const Values<T> right = expected<T>(op, size_, count);
    const Values<T> mine = contribution<T>(rank_, count);
    const auto part = elastic::reduce_scatter(std::span<const T>(mine.span()), op);
    const std::span<const T> its = right.span().subspan(part.offset, part.values.size());
    if (!std::equal(part.values.begin(), part.values.end(), its.begin())) fail("reduce_scatter");
  }

  template <typename T>
  void moves(std::size_t count) {
    const int root = size_ - 1;
    const Values<T> mine = contribution<T>(rank_, count);
    const auto gathered = elastic::allgather(std::span<const T>(mine.span()));
    const Values<T> all(count * static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
      const Values<T> theirs = contribution<T>(rank, count);
      std::copy(theirs.span().begin(), theirs.span().end(),
                all.span().begin() + static_cast<std::ptrdiff_t>(count) * rank);
    }
    check<T>(gathered.values, all.span(), ReduceOp::kSum, "allgather");
    elastic::broadcast(mine.span(), root);
    check<T>(mine.span(), contribution<T>(root, count).span(), ReduceOp::kSum, "broadcast");
  }

  /// A group of all types, and all under names of their own, which are fused into buckets.
  template <typename... Types>
  void together(TypeList<Types...>) {
    constexpr std::size_t kCount = 1003;
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kBitXor,
                              ReduceOp::kLogicalAnd}) {
      const std::tuple<Values<Types>...> grouped{contribution<Types>(rank_, kCount)...};
      const std::tuple<Values<Types>...> named{contribution<Types>(rank_, kCount)...};
      std::vector<TensorView> views;
      std::vector<elastic::Work> works;
      std::apply([&](const auto&... one) { (views.push_back(one.view()), ...); }, grouped);
      elastic::grouped_allreduce(views, op);
      std::apply(
          [&](const auto&... one) {
            (works.push_back(elastic::allreduce_async("tensor " + std::to_string(works.size()),
                                                      one.span(), op)),
             ...);
          },
          named);
      for (elastic::Work& work : works) work.wait();
      (check<Types>(std::get<Values<Types>>(grouped).span(),
                    expected<Types>(op, size_, kCount).span(), op, "grouped"),
       ...);
      (check<Types>(std::get<Values<Types>>(named).span(),
                    expected<Types>(op, size_, kCount).span(), op, "named"),
       ...);
    }
  }

  static void must_refuse(const char* what, const std::function<void()>& call) {
    elastic::testing::must_fail(what, elastic::ErrorCode::kInvalidArgument,
                                {"bools have no average"}, call);
  }

  static void refusals() {
    const Values<bool> bools(3);
    const std::vector<TensorView> group{bools.view()};
    must_refuse("allreduce", [&] { elastic::allreduce(bools.span(), ReduceOp::kAverage); });
    must_refuse("one", [&] { (void)elastic::allreduce(true, ReduceOp::kAverage); });
    must_refuse("group", [&] { elastic::grouped_allreduce(group, ReduceOp::kAverage); });
    must_refuse("named",
                [&] { (void)elastic::allreduce_async("bools", bools.span(), ReduceOp::kAverage); });
    must_refuse("cast", [&] {
      const std::vector<elastic::CastTensor> cast{{bools.view(), DType::kBool, 1}};
      elastic::cast_allreduce(cast, ReduceOp::kAverage);
    });
    must_refuse("reduce_scatter", [&] {
      elastic::reduce_scatter(std::span<const bool>(bools.span()), ReduceOp::kAverage);
    });
  }

  std::string folder_;
  int rank_;
  int size_;
  elastic::testing::ResultHash hash_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: integer_types_check LOG_FOLDER");
  return elastic::testing::as_a_worker([&] { Checks(argv[1]).run(); });
}
