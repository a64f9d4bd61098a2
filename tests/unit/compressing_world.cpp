#include "unit/compressing_world.hpp"

#include <cstring>
#include <memory>

#include <gtest/gtest.h>

namespace elastic::testing {
namespace {

struct Lost {};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t at = 0; at < a.size(); ++at) {
    if (!same_bits(a[at], b[at])) return false;
  }
  return a.size() == b.size();
}

/// Adds elements of a type, in f32 as the library's kernels do.
template <typename T>
void add(const std::uint8_t* bytes, const TensorView& sums) {
  for (std::size_t at = 0; at < sums.count; ++at) {
    T value;
    std::memcpy(&value, bytes + at * sizeof(T), sizeof(T));
    T& sum = static_cast<T*>(sums.data)[at];
    sum = T(static_cast<float>(sum) + static_cast<float>(value));
  }
}

}  // namespace

CompressingWorld::CompressingWorld(std::size_t ranks, const Compression& compression)
    : compression_(compression) {
  resize(ranks);
}

void CompressingWorld::resize(std::size_t ranks) {
  given_.resize(ranks);
  if (ranks < compressors_.size()) compressors_.resize(ranks);
  for (std::size_t rank = compressors_.size(); rank < ranks; ++rank) {
    compressors_.push_back(std::make_unique<GradientCompressor>(
        GradientCompressor::Collectives{
            [this, rank](std::span<const TensorView> tensors, ReduceOp /*op*/) {
              return sum(rank, tensors);
            },
            [this, rank](std::span<const std::uint8_t> block) { return gather(rank, block); }},
        compression_));
  }
}

void CompressingWorld::allreduce(std::vector<std::vector<Tensor>>& tensors, ReduceOp op) {
  for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
    check_failure(rank, tensors[rank], op);
  }
  for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
    call(rank, tensors[rank], op);
    EXPECT_TRUE(same_bits(tensors[rank], tensors[0])) << "rank " << rank << " has other sums";
  }
}

Tensor CompressingWorld::allreduce(std::vector<Tensor> tensors, ReduceOp op) {
  std::vector<std::vector<Tensor>> groups;
  for (Tensor& tensor : tensors) groups.push_back({std::move(tensor)});
  allreduce(groups, op);
  return groups[0][0];
}

void CompressingWorld::call(std::size_t rank, std::vector<Tensor>& tensors, ReduceOp op) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < tensors.size(); ++at) names.push_back(name(at));
  std::vector<NamedTensor> named;
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    named.push_back({names[at], view(std::span(tensors[at]))});
  }
  compressors_[rank]->grouped_allreduce(named, op);
}

void CompressingWorld::check_failure(std::size_t rank, std::vector<Tensor>& tensors, ReduceOp op) {
  const std::vector<Tensor> before = tensors;
  const auto residuals = [&] {
    std::vector<Tensor> all;
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      const auto residual = compressors_[rank]->residual(name(at));
      all.emplace_back(residual.begin(), residual.end());
      all.back().resize(tensors[at].size());  // before the first call there is none: zeros
    }
    return all;
  };
  const std::vector<Tensor> residuals_before = residuals();
  fails_ = true;
  EXPECT_THROW(call(rank, tensors, op), Lost);
  fails_ = false;
  EXPECT_TRUE(same_bits(tensors, before)) << "a call that failed changed the tensors";
  EXPECT_TRUE(same_bits(residuals(), residuals_before)) << "a call that failed changed residuals";
}

Contributors CompressingWorld::contributors() const {
  return {std::make_shared<const std::vector<WorkerId>>(compressors_.size()), 1};
}

Contributors CompressingWorld::sum(std::size_t rank, std::span<const TensorView> tensors) {
  if (fails_) {
    given_[rank].clear();
    for (const TensorView& tensor : tensors) {
      const auto* bytes = static_cast<const std::uint8_t*>(tensor.data);
      given_[rank].insert(given_[rank].end(), bytes, bytes + tensor.bytes());
    }
    throw Lost{};
  }
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    if (tensor.count > 0) std::memset(tensor.data, 0, tensor.bytes());
    for (const auto& bytes : given_) {
      if (tensor.dtype == DType::kF16) add<float16>(bytes.data() + offset, tensor);
      if (tensor.dtype == DType::kBF16) add<bfloat16>(bytes.data() + offset, tensor);
      if (tensor.dtype == DType::kF32) add<float>(bytes.data() + offset, tensor);
    }
    offset += tensor.bytes();
  }
  return contributors();
}

Gathered<std::uint8_t> CompressingWorld::gather(std::size_t rank,
                                                std::span<const std::uint8_t> block) {
  if (fails_) {
    given_[rank].assign(block.begin(), block.end());
    throw Lost{};
  }
  EXPECT_TRUE(std::ranges::equal(given_[rank], block)) << "a second try sends something else";
  Gathered<std::uint8_t> gathered;
  for (const auto& one : given_) {
    gathered.values.insert(gathered.values.end(), one.begin(), one.end());
    gathered.counts.push_back(one.size());
  }
  gathered.contributors = contributors();
  return gathered;
}

}  // namespace elastic::testing
