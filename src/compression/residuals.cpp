#include "compression/residuals.hpp"

#include "elastic/error.hpp"

namespace elastic::codecs {

void TensorMemory::commit() {
  kept.residual.swap(staged.residual);
  kept.momentum.swap(staged.momentum);
  ++calls;
}

TensorMemory& Residuals::of(std::string_view name, std::size_t count, bool with_momentum) {
  const auto found = memories_.find(name);
  if (found == memories_.end()) {
    TensorMemory memory;
    const std::size_t momenta = with_momentum ? count : 0;
    memory.kept = {std::vector<float>(count), std::vector<float>(momenta)};
    memory.staged = memory.kept;
    memory.calls = first_;
    return memories_.emplace(name, std::move(memory)).first->second;
  }
  const std::size_t before = found->second.kept.residual.size();
  if (before != count) {
    throw Error(ErrorCode::kInvalidArgument,
                "GradientCompressor: tensor '" + std::string(name) + "' has " +
                    std::to_string(count) + " elements, and had " + std::to_string(before) +
                    " before; give it a name of its own, or call reset()");
  }
  return found->second;
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
  memories_.clear();
}

}  // namespace elastic::codecs
