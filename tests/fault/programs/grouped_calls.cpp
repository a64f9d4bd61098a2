#include "fault/programs/grouped_calls.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "fault/programs/digits.hpp"

namespace elastic::fault {

namespace {

using Tensor = std::vector<std::int64_t>;

/// More than any job of the tests has.
constexpr std::size_t kMostMembers = 18;

std::array<std::size_t, 3> sizes_of(std::size_t elements) {
  return {elements / 2 + 1, 3, elements / 2};
}

std::vector<Tensor> digits_of(std::size_t elements, int slot) {
  std::vector<Tensor> tensors;
  for (const std::size_t size : sizes_of(elements)) tensors.emplace_back(size, digit(slot));
  return tensors;
}

std::vector<ConstTensorView> inputs_of(const std::vector<Tensor>& tensors) {
  std::vector<ConstTensorView> views;
  for (const Tensor& each : tensors) views.push_back(view(std::span<const std::int64_t>(each)));
  return views;
}

std::vector<TensorView> outputs_of(std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (Tensor& each : tensors) views.push_back(view(std::span<std::int64_t>(each)));
  return views;
}

void must(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace

GroupedOutcome scatter_groups(std::size_t elements, int slot) {
  const std::vector<Tensor> inputs = digits_of(elements, slot);
  std::vector<Tensor> parts;
  for (const Tensor& each : inputs) parts.emplace_back(each.size(), -1);
  const ScatteredTensors result = grouped_reduce_scatter(inputs_of(inputs), outputs_of(parts));
  must(inputs == digits_of(elements, slot), "a grouped_reduce_scatter changed an input");
  const std::int64_t sum = parts.front().front();
  check_digits(sum, result.contributors.size(), slot);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ScatteredPart& part = result.tensors[i];
    const std::size_t share = inputs[i].size() / result.contributors.size();
    must(part.count >= share && part.count <= share + 1, "a part of another size");
    must(part.offset + part.count <= inputs[i].size(), "a part beyond its tensor");
    must(static_cast<std::size_t>(std::count(parts[i].begin(), parts[i].end(), sum)) == part.count,
         "parts of one call over different contributors");
    must(static_cast<std::size_t>(std::count(parts[i].begin(), parts[i].end(), -1)) ==
             inputs[i].size() - part.count,
         "the rest of an output has changed");
  }
  return {std::to_string(sum), result.contributors};
}

GroupedOutcome gather_groups(std::size_t elements, int slot) {
  const std::vector<Tensor> blocks = digits_of(elements, slot);
  std::vector<Tensor> all;
  for (const Tensor& each : blocks) all.emplace_back(each.size() * kMostMembers, -1);
  const GatheredTensors result = grouped_allgather(inputs_of(blocks), outputs_of(all));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const GatheredBlocks& gathered = result.tensors[i];
    must(gathered.counts.size() == result.contributors.size(), "a block of each contributor");
    std::int64_t sum = 0;
    std::size_t at = 0;
    for (const std::size_t count : gathered.counts) {
      must(count == blocks[i].size(), "a block of another size");
      const std::int64_t value = all[i][at];
      for (std::size_t k = 0; k < count; ++k) must(all[i][at + k] == value, "a mixed block");
      sum += value;
      at += count;
    }
    must(at == gathered.count, "counts that do not add up");
    if (i == 0) first = sum;
    must(sum == first, "tensors of one call from different contributors");
  }
  check_digits(first, result.contributors.size(), slot);
  return {std::to_string(first), result.contributors};
}

}  // namespace elastic::fault
