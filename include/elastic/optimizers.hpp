#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/gradient_noise.hpp"
#include "elastic/learning_rate.hpp"

namespace elastic {

/// How weights are drawn towards 0.
enum class WeightDecay : std::uint8_t {
  kCoupled,    ///< `decay * w` is added to the gradient (L2 regularisation)
  kDecoupled,  ///< w is multiplied by `1 - rate * decay` (Loshchilov and Hutter 2019)
};

class State;

namespace detail {
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
/// inside, `v = mu * (rate / rate before) * v + rate * g`. Rounding loses information from u to v,
/// so both forms keep u, and kVelocity computes v from it: it takes the same steps to the last bit.
///
/// Loops run in a fixed order: equal inputs give equal bits on every worker. Options are to be the
/// same on all of them, and on a restart from a checkpoint; a State with others is refused.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API MomentumSgd {
 public:
  /// The values that are kept between steps.
  enum class Form : std::uint8_t {
    kAccumulator,  ///< keeps u
    kVelocity,     ///< keeps v as well, for readers (MXNet's and Keras' momentum)
  };

  /// The parameters of the method.
  struct Options {
    double momentum = 0.9;                      ///< mu: 0 or more, below 1
    bool nesterov = false;                      ///< Nesterov's momentum instead of Polyak's
    double weight_decay = 0;                    ///< 0 or more
    WeightDecay decay = WeightDecay::kCoupled;  ///< how it is applied
    Form form = Form::kAccumulator;             ///< what is kept
  };

  /// Refers to the parameters, which must outlive it and stay where they are.
  /// \throws Error kInvalidArgument for options out of range. They must be in range in single
  ///   precision, too: a momentum of 0.99999999 is not, because it would be 1.
  MomentumSgd(std::vector<std::span<float>> parameters, const Options& options);
  ~MomentumSgd();
  MomentumSgd(const MomentumSgd&) = delete;
  MomentumSgd& operator=(const MomentumSgd&) = delete;

  /// One step. `gradient_sum` has the tensors of the parameters, in their order and sizes, summed
  /// over samples; `batch` is what it is divided by. Allocates nothing.
  /// \throws Error kInvalidArgument, changing nothing: tensors of other sizes, a batch that is not
  ///   positive, a rate that is negative or not finite in single precision, or a rate at which
  ///   decoupled decay would take more than all of the weights (rate * decay > 1).
  void step(Gradient gradient_sum, double batch, const Rate& rate);

  /// Adds all that it keeps, under names that begin with `name`; not the parameters. The options go
  /// with it: a worker with others cannot take the state over. It must stay where it is as long as
  /// `state` lives.
  /// \throws Error as State::add.
  void add_to(State& state, std::string_view name);

  /// \returns u, the tensors one after another.
  std::span<const float> momentum() const noexcept { return momentum_; }
  /// \returns v of the latest step; empty unless the form is kVelocity.
  std::span<const float> velocity() const noexcept { return velocity_; }

 private:
  struct Factors;
  void update(std::span<float> w, std::span<const float> sum, std::size_t offset,
              const Factors& by);

  std::vector<std::span<float>> parameters_;
  Options options_;
  std::unique_ptr<detail::SameOptions> same_options_;
  std::vector<float> momentum_;
  std::vector<float> velocity_;
};

/// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019).
///
/// With g = gradient_sum / batch, and t counted from 1, a step is
///
///     m = beta1 * sqrt(momentum_scale) * m + (1 - beta1) * g
///     v = beta2 * v + (1 - beta2) * g^2
///     w = (1 - rate * decay) * w - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) +
///     epsilon)
///
/// where rate = base * sqrt(gamma): the gradient is normalised by its noise, which falls with the
/// root of the batch. So give LearningRate the linear rule. Where the policy resets the momentum, m
/// and its correction (the power of beta1) begin again.
///
/// The square-root rule of Malladi et al. (2022) scales the betas and epsilon as well, so that m
/// and v average over as many samples as before. By default this scales the rate alone. With
/// Options::scale_betas each step uses
///
///     beta1 = max(0, 1 - gamma * (1 - beta1))    beta2 alike    epsilon = epsilon / sqrt(gamma)
///
/// and the corrections are by the products of the betas that were used.
///
/// Loops run in a fixed order: equal inputs give equal bits on every worker. Options are to be the
/// same on all of them, and on a restart from a checkpoint; a State with others is refused.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API AdamW {
 public:
  /// The parameters of the method.
  struct Options {
    double beta1 = 0.9;          ///< 0 or more, below 1
    double beta2 = 0.999;        ///< 0 or more, below 1
    double epsilon = 1e-8;       ///< > 0
    double weight_decay = 0.01;  ///< 0 or more
    /// Whether the betas and epsilon, which suit the reference batch, follow gamma.
    bool scale_betas = false;
  };

  /// Refers to the parameters, which must outlive it and stay where they are.
  /// \throws Error kInvalidArgument for options out of range. They must be in range in single
  ///   precision, too: an epsilon of 1e-50 is not, because it would be 0.
  AdamW(std::vector<std::span<float>> parameters, const Options& options);
  ~AdamW();
  AdamW(const AdamW&) = delete;
  AdamW& operator=(const AdamW&) = delete;

  /// One step, with the arguments of MomentumSgd::step.
  /// \throws Error as MomentumSgd::step.
  void step(Gradient gradient_sum, double batch, const Rate& rate);

  /// Adds all that it keeps, under names that begin with `name`; not the parameters. The options go
  /// with it: a worker with others cannot take the state over. It must stay where it is as long as
  /// `state` lives.
  /// \throws Error as State::add.
  void add_to(State& state, std::string_view name);

  /// \returns m, the tensors one after another.
  std::span<const float> momentum() const noexcept { return momentum_; }
  /// \returns v of the latest step.
  std::span<const float> variance() const noexcept { return variance_; }

 private:
  std::vector<std::span<float>> parameters_;
  Options options_;
  std::unique_ptr<detail::SameOptions> same_options_;
  std::vector<float> momentum_;
  std::vector<float> variance_;
  double beta1_power_ = 1;  // of as many steps as m has gathered
  double beta2_power_ = 1;
};

}  // namespace elastic
