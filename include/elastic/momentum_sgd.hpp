#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "elastic/export.hpp"
#include "elastic/gradient.hpp"
#include "elastic/rate.hpp"
#include "elastic/weight_decay.hpp"

namespace elastic {

class State;

namespace training {
class SameOptions;
}

/// Stochastic gradient descent with momentum (Polyak 1964; Nesterov as Sutskever et al. 2013).
///
/// With g = gradient_sum / batch (+ decay * w, where coupled) a step is
///
///     u = mu * momentum_scale * u + g
///     v = rate * u                       Nesterov: v = rate * (g + mu * u)
///     w = w - v                          decoupled: w = (1 - rate * decay) * w - v
///
/// with the rate outside of u, where it may change from step to step. The velocity form has it
/// inside, `v = mu * (rate / rate before) * v + rate * g`. In exact arithmetic both take the same
/// steps; rounded they do not, since different u have the same rounded v. So u is what is kept in
/// both, and v is derived from it: form kVelocity takes the same steps to the last bit.
///
/// Loops run in a fixed order: equal inputs give equal bits on every worker. Options are to be the
/// same on all of them, and on a restart from a checkpoint; a State with others is refused.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API MomentumSgd {
 public:
  enum class Form : std::uint8_t {
    kAccumulator,  ///< keeps u
    kVelocity,     ///< keeps v as well, for readers (MXNet's and Keras' momentum)
  };

  struct Options {
    double momentum = 0.9;  ///< mu: 0 or more, below 1
    bool nesterov = false;
    double weight_decay = 0;  ///< 0 or more
    WeightDecay decay = WeightDecay::kCoupled;
    Form form = Form::kAccumulator;
  };

  /// Refers to the parameters, which must outlive it and stay where they are. Throws
  /// Error(kInvalidArgument) for options out of range, which they also have to be in single
  /// precision: a momentum of 0.99999999 is none, because it would be 1.
  MomentumSgd(std::vector<std::span<float>> parameters, const Options& options);
  ~MomentumSgd();
  MomentumSgd(const MomentumSgd&) = delete;
  MomentumSgd& operator=(const MomentumSgd&) = delete;

  /// One step. `gradient_sum` has the tensors of the parameters, in their order and sizes, summed
  /// over samples; `batch` is what it is divided by. Allocates nothing. Throws
  /// Error(kInvalidArgument), changing nothing, on tensors of other sizes, a batch that is not
  /// positive, a rate that is negative or not finite in single precision, or a rate at which
  /// decoupled decay would take more than all of the weights: rate * decay > 1.
  void step(Gradient gradient_sum, double batch, const Rate& rate);

  /// Adds all that it keeps, under names that begin with `name`; not the parameters. With it go the
  /// options: a worker with others cannot take the state over. It must stay where it is as long as
  /// `state` lives.
  void add_to(State& state, std::string_view name);

  /// u, the tensors one after another.
  std::span<const float> momentum() const noexcept { return momentum_; }
  /// v of the latest step; empty unless the form is kVelocity.
  std::span<const float> velocity() const noexcept { return velocity_; }

 private:
  struct Factors;
  void update(std::span<float> w, std::span<const float> sum, std::size_t offset,
              const Factors& by);

  std::vector<std::span<float>> parameters_;
  Options options_;
  std::unique_ptr<training::SameOptions> same_options_;
  std::vector<float> momentum_;
  std::vector<float> velocity_;
};

}  // namespace elastic
