#pragma once

#include <span>
#include <vector>

#include <elastic/optimizers.hpp>

#include "examples/digits/dataset.hpp"
#include "examples/digits/model.hpp"

namespace digits {

/// On the host: sums are made right where they are wanted.
class HostModel final : public Model {
 public:
  /// `training` must outlive it.
  HostModel(const ModelOptions& options, std::span<const Sample> training);

  void add_gradients(std::span<const std::size_t> samples, StepSums& sums) override;
  void update(const Parameters& gradient_sum, double batch, const elastic::Rate& rate) override;
  Parameters weights() const override { return weights_; }
  void add_to(elastic::State& state) override;

 private:
  std::vector<const Sample*> load(std::span<const std::size_t> indices) const;

  std::span<const Sample> training_;
  Network network_;
  Parameters weights_;
  elastic::MomentumSgd optimizer_;
};

}  // namespace digits
