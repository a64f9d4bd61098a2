// Adasum in every backend: compared with the model of the paper, in a tolerance for each type.
#include <algorithm>
#include <cstring>
#include <random>

#include "backend_contract.hpp"
#include "calls.hpp"
#include "tests/adasum_model.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {

using elastic::adasum_model::Vector;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AdasumContract);

namespace {

const DType kFloats[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

/// The vector of a rank, as it is after rounding to `dtype`.
Vector gradient(int rank, std::size_t count, DType dtype) {
  std::mt19937 random(static_cast<unsigned>(rank) * 100 + static_cast<unsigned>(count));
  std::uniform_real_distribution<double> number(-1, 1.5);  // so that vectors are not orthogonal
  Vector values(count);
  for (double& value : values) value = number(random);
  const Payload rounded = payload(section(dtype, count), values);
  return values_of(rounded.data.data(), dtype, count);
}

std::vector<Vector> gradients(int size, std::size_t count, DType dtype) {
  std::vector<Vector> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(gradient(rank, count, dtype));
  return all;
}

/// Half a unit in the last place of 1. Each level rounds once.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    default:
      return 0x1p-48;  // the dot products are added up in another order, too
  }
}

void expect_near(const Vector& is, const Vector& should, const std::vector<Vector>& of,
                 DType dtype) {
  const double tolerance = 16 * rounding(dtype) * adasum_model::greatest_magnitude(of);
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    ASSERT_NEAR(is[i], should[i], tolerance)
        << "element " << i << " of " << is.size() << ", dtype " << int(dtype);
  }
}

/// A call with tensors of several types, some of which end within a share, a half or a cache line.
Call group_call(ReduceOp op) {
  Call call = allreduce_call(DType::kF32, 100, op);
  call.sections = {section(DType::kF32, 100, 0), section(DType::kF32, 3, 448),
                   section(DType::kF16, 50'000, 512), section(DType::kF32, 0, 100'544),
                   section(DType::kF64, 77, 100'544)};
  call.fingerprint.tensors = 5;
  return call;
}

}  // namespace

void AdasumContract::expect_model(ReduceOp op, const Model& model) {
  std::uint64_t position = 0;
  for (const DType dtype : kFloats) {
    for (const std::size_t count : {0UL, 1UL, 2UL, 7UL, 33UL, 1001UL, 100'003UL / kSlowness}) {
      const auto of = gradients(size(), count, dtype);
      const Vector should = model(of);
      on_all_ranks([&](int rank) {
        const Call call = allreduce_call(dtype, count, op);
        Payload mine = payload(call.sections[0], of[static_cast<std::size_t>(rank)]);
        expect_ok(backend(rank).run(position, call, mine));
        expect_near(values_of(mine.data.data(), dtype, count), should, of, dtype);
      });
      ++position;
    }
  }
}

/// Each tensor has dot products of its own, also where halves end within a tensor.
void AdasumContract::expect_model_of_a_group(ReduceOp op, const Model& model) {
  const Call call = group_call(op);
  std::vector<std::vector<Vector>> of;
  std::vector<Vector> should;
  for (const Section& each : call.sections) {
    of.push_back(gradients(size(), each.count, each.dtype));
    should.push_back(model(of.back()));
  }
  on_all_ranks([&](int rank) {
    Payload mine;
    mine.data.resize(extent(call.sections));
    for (std::size_t i = 0; i < of.size(); ++i) {
      fill(mine.data, call.sections[i], of[i][static_cast<std::size_t>(rank)]);
    }
    expect_ok(backend(rank).run(0, call, mine));
    for (std::size_t i = 0; i < of.size(); ++i) {
      const Section& each = call.sections[i];
      expect_near(values_of(mine.data.data() + each.offset, each.dtype, each.count), should[i],
                  of[i], each.dtype);
    }
  });
}

TEST_P(AdasumContract, IsThatOfThePaper) {
  expect_model(ReduceOp::kAdasum, adasum_model::of_all);
}

/// As many as the ranks, each in dimensions of its own.
TEST_P(AdasumContract, AddsOrthogonalVectors) {
  on_all_ranks([this](int rank) {
    const auto ranks = static_cast<std::size_t>(size());
    Vector mine(ranks * 100);
    Vector sum(ranks * 100);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = static_cast<double>(i % 13) - 6;
      if (i % ranks == static_cast<std::size_t>(rank)) mine[i] = sum[i];
    }
    const Call call = allreduce_call(DType::kF32, sum.size(), ReduceOp::kAdasum);
    Payload vector = payload(call.sections[0], mine);
    expect_ok(backend(rank).run(0, call, vector));
    EXPECT_EQ(values_of(vector.data.data(), DType::kF32, sum.size()), sum);
  });
}

TEST_P(AdasumContract, AveragesParallelVectors) {
  on_all_ranks([this](int rank) {
    const Vector same = contribution(3, 999, DType::kF64);
    const Call call = allreduce_call(DType::kF64, same.size(), ReduceOp::kAdasum);
    Payload vector = payload(call.sections[0], same);
    expect_ok(backend(rank).run(0, call, vector));
    EXPECT_EQ(values_of(vector.data.data(), DType::kF64, same.size()), same);
  });
}

TEST_P(AdasumContract, WeighsEachTensorOfAGroup) {
  expect_model_of_a_group(ReduceOp::kAdasum, adasum_model::of_all);
}

TEST_P(AdasumContract, CombinesTheAveragesOfHosts) {
  expect_model(ReduceOp::kHierarchicalAdasum,
               [this](const auto& of) { return adasum_model::of_hosts(of, hosts()); });
}

TEST_P(AdasumContract, WeighsEachTensorOfAGroupOfTheHosts) {
  expect_model_of_a_group(ReduceOp::kHierarchicalAdasum,
                          [this](const auto& of) { return adasum_model::of_hosts(of, hosts()); });
}

/// The sum of these is infinite in this type.
TEST_P(AdasumContract, AveragesWithoutASumThatOverflows) {
  on_all_ranks([this](int rank) {
    const Vector same(999, 65504);
    const Call call = allreduce_call(DType::kF16, same.size(), ReduceOp::kHierarchicalAdasum);
    Payload vector = payload(call.sections[0], same);
    expect_ok(backend(rank).run(0, call, vector));
    EXPECT_EQ(values_of(vector.data.data(), DType::kF16, same.size()), same);
  });
}

/// Random bits have NaN and infinities among them; without them all values are finite.
TEST_P(AdasumContract, GivesAllRanksTheSameBits) {
  std::vector<std::string> results(static_cast<std::size_t>(size()));
  std::uint64_t position = 0;
  for (const ReduceOp op : {ReduceOp::kAdasum, ReduceOp::kHierarchicalAdasum}) {
    for (const DType dtype : kFloats) {
      for (const bool any_bits : {false, true}) {
        const std::size_t count = op == ReduceOp::kAdasum ? 4001 : 40'001;
        on_all_ranks([&](int rank) {
          std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 17);
          const Call call = allreduce_call(dtype, count, op);
          Payload mine = payload(call.sections[0], gradient(rank, count, dtype));
          if (any_bits) {
            for (auto& byte : mine.data.bytes()) byte = static_cast<std::byte>(random());
          }
          expect_ok(backend(rank).run(position, call, mine));
          const auto bytes = mine.data.bytes();
          results[static_cast<std::size_t>(rank)] = {reinterpret_cast<const char*>(bytes.data()),
                                                     bytes.size()};
        });
        ++position;
        world_.exchange(results);
        for (const auto& result : results) ASSERT_TRUE(result == results[0]);
      }
    }
  }
}

}  // namespace elastic::collectives
