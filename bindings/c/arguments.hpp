#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <elastic/error.hpp>
#include <elastic/results.hpp>
#include <elastic/root.hpp>
#include <elastic/types.hpp>

#include "elastic.h"
#include "guard.hpp"
#include "handles.hpp"

// The arguments and results of C programs, as the C++ interface has them.

namespace elastic::c {

/// A number that is no element, operation or device is refused by the collective.
template <typename Enum, typename Number>
Enum checked(Number number, int most, const char* call, const char* what) {
  if (number >= 0 && static_cast<int>(number) <= most) return static_cast<Enum>(number);
  throw Error(ErrorCode::kInvalidArgument, std::string(call) + ": " + what + " " +
                                               std::to_string(static_cast<int>(number)) +
                                               " does not exist");
}

inline TensorView tensor_of(const elastic_tensor* tensor, const char* call, const char* what) {
  require(tensor, call, what);
  return {
      tensor->data,
      tensor->count,
      checked<DType>(tensor->dtype, ELASTIC_BOOL, call, "element type"),
      {checked<Device::Kind>(tensor->device, ELASTIC_CUDA, call, "device"), tensor->device_index}};
}

inline std::vector<TensorView> tensors_of(const elastic_tensor* tensors, size_t count,
                                          const char* call) {
  if (count > 0) require(tensors, call, "tensors");
  std::vector<TensorView> views;
  views.reserve(count);
  for (size_t i = 0; i < count; ++i) views.push_back(tensor_of(tensors + i, call, "tensor"));
  return views;
}

inline ReduceOp op_of(elastic_op op, const char* call) {
  return checked<ReduceOp>(op, ELASTIC_HIERARCHICAL_ADASUM, call, "operation");
}

inline Root root_of(elastic_root root) {
  return root.worker != 0 ? Root::worker(root.worker) : Root(root.rank);
}

/// Refers to the counts of `blocks`.
inline BlocksView blocks_of(const elastic_blocks* blocks, const char* call) {
  require(blocks, call, "blocks");
  if (blocks->count > 0) require(blocks->counts, call, "counts of the blocks");
  if (blocks->count == 0 && blocks->counts != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) +
                    ": the blocks have counts and are 0 in number; set count to how many counts "
                    "there are, or counts to NULL for equal blocks");
  }
  return {tensor_of(&blocks->data, call, "data of the blocks"),
          {blocks->counts, blocks->count},
          blocks->to != nullptr ? blocks->to->value : Contributors(),
          {}};
}

/// Writes as many counts as the caller has room for.
inline void fill_counts(size_t* out, size_t room, const std::vector<std::size_t>& counts) {
  if (out == nullptr) return;
  std::copy_n(counts.begin(), std::min(room, counts.size()), out);
}

inline void fill(elastic_contributors* out, Contributors value) {
  if (out != nullptr) out->value = std::move(value);
}

template <typename T>
void fill(T* out, T value) {
  if (out != nullptr) *out = value;
}

/// Writes as much of `value` as the caller's structure has room for.
template <typename Struct>
void fill_struct(Struct* out, Struct value, const char* call) {
  require(out, call, "the structure");
  if (out->size < sizeof(out->size)) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) + ": set the structure's size to sizeof of it first");
  }
  value.size = std::min(out->size, sizeof value);
  std::memcpy(out, &value, value.size);
}

/// The choice that a word stands for.
template <typename Table>
auto choice_of(const Table& table, const char* word, const char* call, const char* what) {
  if (const auto found = find_named(table, word)) return *found;
  std::string words;
  for (const auto& choice : table) words += (words.empty() ? "" : ", ") + std::string(choice.name);
  throw Error(ErrorCode::kInvalidArgument,
              std::string(call) + ": " + what + " is '" + word + "'; it is one of " + words);
}

/// Names and tensors of a call, `count` of each.
inline void require_named(const char* const* names, const elastic_tensor* tensors, size_t count,
                          const char* call) {
  if (count == 0) return;
  require(names, call, "names");
  require(tensors, call, "tensors");
  for (size_t i = 0; i < count; ++i) require(names[i], call, "one of the names");
}

}  // namespace elastic::c
