#pragma once

#include <string>
#include <string_view>

#include <elastic/libtorch/view.hpp>
#include <elastic/state.hpp>

namespace elastic::libtorch {

/// Adds a module's parameters and buffers, under names that begin with `name`. They are written in
/// place when a worker joins: do not move the module (`to`) or replace its tensors afterwards.
///
/// All members compare their states, so buffers have to be equal, too: statistics of batch
/// normalization are each worker's own, and are broadcast before State::commit.
/// \throws Error kInvalidArgument as State::add and `view`, and for tensors on a device.
inline void add(State& state, std::string_view name, const ::torch::nn::Module& module) {
  const auto add_all = [&](const auto& tensors) {
    for (const auto& item : tensors) {
      const std::string entry = std::string(name) + "." + item.key();
      state.add(entry, view(item.value().detach(), entry));
    }
  };
  add_all(module.named_parameters());
  add_all(module.named_buffers());
}

}  // namespace elastic::libtorch
