#include "calls.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include <gtest/gtest.h>

namespace elastic::collectives {
namespace {

transport::Fingerprint fingerprint(Kind kind, DType dtype, ReduceOp op, std::uint64_t count) {
  transport::Fingerprint print;
  print.kind = static_cast<std::uint8_t>(kind);
  print.dtype = static_cast<std::uint8_t>(dtype);
  print.redop = static_cast<std::uint8_t>(op);
  print.count = count;
  return print;
}

Call call(Kind kind, DType dtype, std::size_t count, ReduceOp op) {
  Call made;
  made.kind = kind;
  made.redop = op;
  made.sections = {section(dtype, count)};
  made.fingerprint = fingerprint(kind, dtype, op, count);
  return made;
}

std::size_t total(const std::vector<std::uint64_t>& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

template <typename T>
void put(std::byte* at, const std::vector<double>& values) {
  for (const double value : values) {
    T element{};
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      element = T(static_cast<float>(value));
    } else {
      element = static_cast<T>(value);
    }
    std::memcpy(at, &element, sizeof element);
    at += sizeof element;
  }
}

template <typename T>
std::vector<double> get(const std::byte* at, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    T element{};
    std::memcpy(&element, at + i * sizeof element, sizeof element);
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      values.push_back(static_cast<double>(static_cast<float>(element)));
    } else {
      values.push_back(static_cast<double>(element));
    }
  }
  return values;
}

template <typename Use>
auto with_type(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::kF16:
      return use(float16());
    case DType::kBF16:
      return use(bfloat16());
    case DType::kF32:
      return use(float());
    case DType::kF64:
      return use(double());
    case DType::kI8:
      return use(std::int8_t());
    case DType::kU8:
      return use(std::uint8_t());
    case DType::kI32:
      return use(std::int32_t());
    case DType::kU32:
      return use(std::uint32_t());
    case DType::kU64:
      return use(std::uint64_t());
    case DType::kI16:
      return use(std::int16_t());
    case DType::kU16:
      return use(std::uint16_t());
    case DType::kBool:
      return use(bool());
    case DType::kI64:
      break;
  }
  return use(std::int64_t());
}

bool has_negatives(DType dtype) {
  return with_type(dtype, []<typename T>(T) { return !std::is_unsigned_v<T>; });
}

}  // namespace

Section section(DType dtype, std::size_t count, std::size_t offset) {
  return {dtype, count, offset};
}

Call allreduce_call(DType dtype, std::size_t count, ReduceOp op) {
  return call(Kind::kAllreduce, dtype, count, op);
}

Call broadcast_call(DType dtype, std::size_t count, int root) {
  Call made = call(Kind::kBroadcast, dtype, count, ReduceOp::kSum);
  made.root = root;
  made.fingerprint.detail = static_cast<std::uint32_t>(root);
  return made;
}

Call allgather_call(DType dtype, std::size_t count) {
  Call made = call(Kind::kAllgather, dtype, count, ReduceOp::kSum);
  made.fingerprint.count = 0;
  return made;
}

Call reduce_scatter_call(DType dtype, std::size_t count, ReduceOp op) {
  return call(Kind::kReduceScatter, dtype, count, op);
}

Call barrier_call() {
  Call made;
  made.kind = Kind::kBarrier;
  made.fingerprint = fingerprint(Kind::kBarrier, DType::kF16, ReduceOp::kSum, 0);
  return made;
}

Call alltoall_call(DType dtype, const std::vector<std::uint64_t>& counts, bool ragged) {
  Call made = call(Kind::kAlltoall, dtype, total(counts), ReduceOp::kSum);
  made.counts = counts;
  made.ragged = ragged;
  made.fingerprint.redop = ragged ? transport::Fingerprint::kRagged : 0;
  made.fingerprint.count = ragged ? 0 : counts.front();
  return made;
}

Call gather_call(DType dtype, std::size_t count, int root) {
  Call made = call(Kind::kGather, dtype, count, ReduceOp::kSum);
  made.root = root;
  made.fingerprint.detail = static_cast<std::uint32_t>(root);
  made.fingerprint.count = 0;
  return made;
}

Call scatter_call(DType dtype, const std::vector<std::uint64_t>& counts, int root) {
  Call made = call(Kind::kScatter, dtype, total(counts), ReduceOp::kSum);
  made.root = root;
  made.counts = counts;
  made.fingerprint.detail = static_cast<std::uint32_t>(root);
  made.fingerprint.count = 0;
  return made;
}

Call reduce_call(DType dtype, std::size_t count, int root, ReduceOp op) {
  Call made = call(Kind::kReduce, dtype, count, op);
  made.root = root;
  made.fingerprint.detail = static_cast<std::uint32_t>(root);
  return made;
}

Call scan_call(DType dtype, std::size_t count, bool exclusive, ReduceOp op) {
  Call made = call(Kind::kScan, dtype, count, op);
  made.exclusive = exclusive;
  if (exclusive) made.fingerprint.detail = transport::Fingerprint::kExclusive;
  return made;
}

void fill(Buffer& buffer, const Section& section, const std::vector<double>& values) {
  with_type(section.dtype,
            [&](auto element) { put<decltype(element)>(buffer.data() + section.offset, values); });
}

std::vector<double> values_of(const std::byte* data, DType dtype, std::size_t count) {
  return with_type(dtype, [&](auto element) { return get<decltype(element)>(data, count); });
}

Payload payload(const Section& section, const std::vector<double>& values) {
  Payload made;
  made.data.resize(section.offset + section.count * size_of(section.dtype));
  fill(made.data, section, values);
  return made;
}

void expect_ok(const Status& status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<double> contribution(int rank, std::size_t count, DType dtype) {
  std::vector<double> values(count);
  const std::size_t seed = static_cast<std::size_t>(rank) * 5 + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto digit = static_cast<double>((seed + i * 3 + i / 7) % 4);
    values[i] = has_negatives(dtype) ? digit - 2 : static_cast<double>(digit >= 2);
  }
  return values;
}

namespace {

double bits_combined(double left, double right, ReduceOp op) {
  const auto a = static_cast<std::int64_t>(left);
  const auto b = static_cast<std::int64_t>(right);
  return static_cast<double>(op == ReduceOp::kBitAnd  ? a & b
                             : op == ReduceOp::kBitOr ? a | b
                                                      : a ^ b);
}

double logical_combined(bool left, bool right, ReduceOp op) {
  return static_cast<double>(op == ReduceOp::kLogicalAnd  ? left && right
                             : op == ReduceOp::kLogicalOr ? left || right
                                                          : left != right);
}

}  // namespace

std::vector<double> combined(int size, std::size_t count, DType dtype, ReduceOp op) {
  std::vector<double> result = contribution(0, count, dtype);
  if (is_logical(op)) {
    for (double& value : result) value = static_cast<double>(value != 0);
  }
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<double> next = contribution(rank, count, dtype);
    for (std::size_t i = 0; i < count; ++i) {
      switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kAverage:
          result[i] += next[i];
          break;
        case ReduceOp::kMin:
          result[i] = std::min(result[i], next[i]);
          break;
        case ReduceOp::kMax:
          result[i] = std::max(result[i], next[i]);
          break;
        case ReduceOp::kProduct:
          result[i] *= next[i];
          break;
        case ReduceOp::kBitAnd:
        case ReduceOp::kBitOr:
        case ReduceOp::kBitXor:
          result[i] = bits_combined(result[i], next[i], op);
          break;
        case ReduceOp::kLogicalAnd:
        case ReduceOp::kLogicalOr:
        case ReduceOp::kLogicalXor:
          result[i] = logical_combined(result[i] != 0, next[i] != 0, op);
          break;
        case ReduceOp::kAdasum:
        case ReduceOp::kHierarchicalAdasum:
          ADD_FAILURE() << "Adasum combines whole tensors";
      }
      if (dtype == DType::kBool) result[i] = std::min(result[i], 1.0);
    }
  }
  return result;
}

}  // namespace elastic::collectives
