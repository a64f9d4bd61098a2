#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/element_type.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/kernels/scale.hpp"

namespace elastic::kernels {
namespace {

const ReduceOp kOps[] = {ReduceOp::kSum,       ReduceOp::kAverage,   ReduceOp::kMin,
                         ReduceOp::kMax,       ReduceOp::kProduct,   ReduceOp::kBitAnd,
                         ReduceOp::kBitOr,     ReduceOp::kBitXor,    ReduceOp::kLogicalAnd,
                         ReduceOp::kLogicalOr, ReduceOp::kLogicalXor};

/// More than two vectors, whatever their size; and once enough to take the trouble to align them.
constexpr std::size_t kMostElements = 150;
constexpr std::size_t kManyElements = 2300;

/// Results element by element, without any vectors.
template <typename T>
struct Plain {
  static constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
  using Wide = std::conditional_t<kIsHalf, float, T>;

  static T rounded(Wide value) {
    if constexpr (!std::is_integral_v<Wide>) {
      if (std::isnan(value)) value = std::numeric_limits<Wide>::quiet_NaN();
    }
    return T(value);
  }

  static T reduced(ReduceOp op, T left, T right) {
    const Wide a = static_cast<Wide>(left);
    const Wide b = static_cast<Wide>(right);
    switch (op) {
      case ReduceOp::kBitAnd:
        return bits(left, right, std::bit_and());
      case ReduceOp::kBitOr:
        return bits(left, right, std::bit_or());
      case ReduceOp::kBitXor:
        return bits(left, right, std::bit_xor());
      case ReduceOp::kLogicalAnd:
        return T(static_cast<Wide>(a != 0 && b != 0));
      case ReduceOp::kLogicalOr:
        return T(static_cast<Wide>(a != 0 || b != 0));
      case ReduceOp::kLogicalXor:
        return T(static_cast<Wide>((a != 0) != (b != 0)));
      default:
        return numbers(op, a, b);
    }
  }

  template <typename Operation>
  static T bits(T left, T right, Operation operation) {
    auto result = std::bit_cast<std::array<std::byte, sizeof(T)>>(left);
    const auto other = std::bit_cast<std::array<std::byte, sizeof(T)>>(right);
    for (std::size_t i = 0; i < sizeof(T); ++i) result[i] = operation(result[i], other[i]);
    return std::bit_cast<T>(result);
  }

  static T numbers(ReduceOp op, Wide a, Wide b) {
    if constexpr (!std::is_integral_v<Wide>) {
      if (std::isnan(a) || std::isnan(b)) return rounded(a + b);
    }
    switch (op) {
      case ReduceOp::kMin:
        return rounded(b < a ? b : a);
      case ReduceOp::kMax:
        return rounded(b > a ? b : a);
      case ReduceOp::kProduct:
        if constexpr (std::is_integral_v<Wide>) {
          return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        } else {
          return rounded(a * b);
        }
      default:
        if constexpr (std::is_integral_v<Wide>) {
          return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        } else {
          return rounded(a + b);
        }
    }
  }

  static T divided(T value, std::uint32_t divisor) {
    if constexpr (std::is_unsigned_v<Wide>) {
      return static_cast<T>(std::uint64_t{value} / divisor);
    } else if constexpr (std::is_integral_v<Wide>) {
      return static_cast<T>(static_cast<std::int64_t>(value) / std::int64_t{divisor});
    } else {
      return rounded(static_cast<Wide>(value) / static_cast<Wide>(divisor));
    }
  }
};

/// The operation on the bytes of bools: "and" is their minimum, and "or" their maximum.
ReduceOp as_bytes(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
    case ReduceOp::kLogicalAnd:
      return ReduceOp::kMin;
    case ReduceOp::kBitXor:
    case ReduceOp::kLogicalXor:
      return ReduceOp::kBitXor;
    default:
      return ReduceOp::kMax;
  }
}

using Bytes = std::vector<std::byte>;

/// Bytes at an address that is off by `offset`, between others that are to stay as they are.
class Place {
 public:
  explicit Place(std::size_t bytes, std::size_t offset)
      : all_(bytes + offset + 2 * kAround, std::byte{0xa5}), bytes_(bytes), offset_(offset) {}
  Place(const Bytes& content, std::size_t offset) : Place(content.size(), offset) {
    std::copy(content.begin(), content.end(), data());
  }

  std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(all_.data());
    return all_.data() + (kAround - address % kAround) + offset_;
  }
  Bytes content() { return {data(), data() + bytes_}; }
  bool intact_around() {
    const auto untouched = [](std::byte byte) { return byte == std::byte{0xa5}; };
    return std::all_of(all_.data(), data(), untouched) &&
           std::all_of(data() + bytes_, all_.data() + all_.size(), untouched);
  }

 private:
  static constexpr std::size_t kAround = 64;
  Bytes all_;
  std::size_t bytes_;
  std::size_t offset_;
};

/// Runs once for each instruction set that this processor has, with random numbers.
class EveryInstructionSet : public testing::Test {
 protected:
  ~EveryInstructionSet() override { hwy::SetSupportedTargetsForTest(0); }

  /// Sets that the loops do not exist for stand for the one that every processor has.
  template <typename Check>
  void for_each(Check check) {
    for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
      const std::int64_t target = left & -left;
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      check();
      hwy::SetSupportedTargetsForTest(0);
    }
  }

  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }
  /// An offset of elements: at their own boundaries, or, half the time, anywhere.
  std::size_t random_offset(std::size_t element) {
    const std::size_t offset = random_() % 64;
    return random_() % 2 == 0 ? offset : offset / element * element;
  }

  std::mt19937_64 random_{20260101};
};

/// Random bits, so that all kinds of floats occur.
TEST_F(EveryInstructionSet, ReducesAlike) {
  for_each([&] {
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : kOps) {
        for (std::size_t n = 0; n <= kMostElements; ++n) {
          const std::size_t elements = n < kMostElements ? n : kManyElements;
          const std::size_t element = size_of(dtype);
          const Bytes a = random_bytes(elements * element);
          const Bytes b = random_bytes(elements * element);
          Bytes expected(a.size());
          const ReduceOp plain_op = dtype == DType::kBool ? as_bytes(op) : op;
          with_element_of(dtype, [&](auto zero) {
            using T = decltype(zero);
            for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
              T x, y;
              std::memcpy(&x, &a[i], sizeof(T));
              std::memcpy(&y, &b[i], sizeof(T));
              const T z = Plain<T>::reduced(plain_op, x, y);
              std::memcpy(&expected[i], &z, sizeof(T));
            }
          });
          for (const Store store : {Store::kTemporal, Store::kNonTemporal}) {
            const Function function = reduce(dtype, op, store);
            Place left(a, random_offset(element));
            Place right(b, random_offset(element));
            Place into(a.size(), random_offset(element));
            function(into.data(), left.data(), right.data(), elements);
            ASSERT_EQ(into.content(), expected)
                << "dtype " << int(dtype) << " op " << int(op) << " of " << elements;
            ASSERT_TRUE(into.intact_around());
            Place left_again(a, random_offset(element));
            function(left_again.data(), left_again.data(), right.data(), elements);
            ASSERT_EQ(left_again.content(), expected);
            function(right.data(), left.data(), right.data(), elements);
            ASSERT_EQ(right.content(), expected);
          }
        }
      }
    }
  });
}

TEST_F(EveryInstructionSet, ScalesAlike) {
  for_each([&] {
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
      for (const std::uint32_t divisor : {1U, 3U}) {
        for (std::size_t elements = 0; elements < kMostElements; ++elements) {
          const Bytes a = random_bytes(elements * size_of(dtype));
          Bytes expected(a.size());
          constexpr double kFactor = 0.3;
          with_element_of(dtype, [&](auto zero) {
            using T = decltype(zero);
            using Wide = typename Plain<T>::Wide;
            for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
              T x;
              std::memcpy(&x, &a[i], sizeof(T));
              const Wide quotient = static_cast<Wide>(x) / static_cast<Wide>(divisor);
              x = Plain<T>::rounded(quotient * static_cast<Wide>(kFactor));
              std::memcpy(&expected[i], &x, sizeof(T));
            }
          });
          Place from(a, random_offset(size_of(dtype)));
          Place into(a.size(), random_offset(size_of(dtype)));
          scale(dtype, into.data(), from.data(), elements, kFactor, divisor);
          ASSERT_EQ(into.content(), expected) << "dtype " << int(dtype) << " of " << elements;
          ASSERT_TRUE(into.intact_around());
          scale(dtype, from.data(), from.data(), elements, kFactor, divisor);
          ASSERT_EQ(from.content(), expected);
        }
      }
    }
  });
}

TEST_F(EveryInstructionSet, DividesAlike) {
  for_each([&] {
    for (const DType dtype : kDTypes) {
      for (const std::uint32_t divisor : {1U, 2U, 3U, 7U, 256U, 300U, 65537U, 0xffffffffU}) {
        for (std::size_t elements = 0; elements < kMostElements; ++elements) {
          const Bytes a = random_bytes(elements * size_of(dtype));
          Bytes expected(a.size());
          with_element_of(dtype, [&](auto zero) {
            using T = decltype(zero);
            for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
              T x;
              std::memcpy(&x, &a[i], sizeof(T));
              x = Plain<T>::divided(x, divisor);
              std::memcpy(&expected[i], &x, sizeof(T));
            }
          });
          Place place(a, random_offset(size_of(dtype)));
          divide(dtype, place.data(), elements, divisor);
          ASSERT_EQ(place.content(), expected)
              << "dtype " << int(dtype) << " by " << divisor << " of " << elements;
          ASSERT_TRUE(place.intact_around());
        }
      }
    }
  });
}

TEST_F(EveryInstructionSet, Copies) {
  for_each([&] {
    for (std::size_t bytes = 0; bytes < 400; ++bytes) {
      const Bytes sent = random_bytes(bytes);
      for (const Store store : {Store::kTemporal, Store::kNonTemporal}) {
        Place from(sent, random_offset(1));
        Place into(bytes, random_offset(1));
        copy(into.data(), from.data(), bytes, store);
        ASSERT_EQ(into.content(), sent);
        ASSERT_TRUE(into.intact_around());
      }
    }
  });
}

}  // namespace
}  // namespace elastic::kernels
