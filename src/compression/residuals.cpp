#include "compression/residuals.hpp"

#include <utility>

#include "elastic/error.hpp"

namespace elastic::codecs {

void TensorMemory::commit() {
  kept.residual.swap(staged.residual);
  kept.momentum.swap(staged.momentum);
  ++calls;
}

void Residuals::require_size(std::string_view name, std::size_t count) {
  const auto known = sizes_.find(name);
  if (known == sizes_.end()) {
    sizes_.emplace(name, count);
  } else if (known->second != count) {
    throw Error(ErrorCode::kInvalidArgument,
                "GradientCompressor: tensor '" + std::string(name) + "' has " +
                    std::to_string(count) + " elements, and had " + std::to_string(known->second) +
                    " before; give it a name of its own, or call reset()");
  }
}

TensorMemory& Residuals::of(std::string_view name, std::size_t count, bool with_momentum) {
  const auto found = memories_.find(name);
  if (found != memories_.end()) return found->second;
  TensorMemory memory;
  const std::size_t momenta = with_momentum ? count : 0;
  memory.kept = {std::vector<float>(count), std::vector<float>(momenta)};
  memory.staged = memory.kept;
  memory.calls = first_;
  return memories_.emplace(name, std::move(memory)).first->second;
}

const TensorMemory* Residuals::find(std::string_view name) const {
  const auto found = memories_.find(name);
  return found == memories_.end() ? nullptr : &found->second;
}

void Residuals::rescale(float factor) {
  for (auto& [name, memory] : memories_) {
    for (float& value : memory.kept.residual) value *= factor;
  }
}

void Residuals::clear() {
  sizes_.clear();
  memories_.clear();
}

}  // namespace elastic::codecs
