#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/options.hpp"
#include "elastic/types.hpp"

namespace elastic {

class Context;

/// A gradient and its name in messages. Does not own it.
struct NamedGradient {
  std::string name;        ///< for messages
  ConstTensorView values;  ///< the gradient, in host memory
};

/// Keeps NaN and Inf in gradients from the weights, on all ranks alike, as Options::non_finite
/// says:
///
///     elastic::FiniteCheck check({{"conv1", view(conv1)}, {"conv2", view(conv2)}});
///     ...
///     check.begin_step();
///     check.before_sum();
///     elastic::grouped_allreduce(gradients);       // in place
///     if (check.after_sum()) optimizer.step(...);  // otherwise the step is skipped
///
/// The sum of anything with NaN or Inf is NaN or Inf, and it has the same bits on all ranks, so all
/// of them see the same in it. "skip" costs one pass over the sum; "error" one more over what this
/// worker contributes, and an exchange before the error, to find its rank; "pass" nothing.
///
/// For sums and averages. Thread safety: none.
class ELASTIC_API FiniteCheck {
 public:
  /// Uses `context`, or the default context. The gradients are summed in place. Context and
  /// gradients must outlive the check.
  /// \throws Error kInvalidArgument: a gradient is not in host memory. kNotInitialized: there is no
  ///   default context.
  /// \{
  explicit FiniteCheck(std::vector<NamedGradient> gradients);
  FiniteCheck(Context& context, std::vector<NamedGradient> gradients);
  /// \}

  /// Forgets what `before_sum` saw in a step whose sum threw, so that the next step's error does
  /// not name its rank. May be left out if no step is repeated after an Error.
  void begin_step() noexcept;
  /// Looks at what this worker contributes, if the policy needs to name the rank. If the
  /// contribution is made of several parts (VirtualBatch), call it after each part: the first value
  /// that is not finite counts.
  void before_sum();
  /// Looks at the sum.
  /// \returns true if the sum may be used, false if the step is to be skipped.
  /// \throws Error kNotFinite, on all ranks alike, under the policy "error". The message names rank
  ///   and gradient. peer() is that rank, or -1 if the contributions were finite and their sum is
  ///   not, or if the rank that contributed the value is gone.
  [[nodiscard]] bool after_sum();

 private:
  struct Place {
    std::size_t gradient = 0;
    std::size_t element = 0;
  };

  std::optional<Place> find() const;
  [[noreturn]] void fail(const Place& in_sum, const std::optional<Place>& own);

  Context& context_;
  NonFinite policy_;
  std::vector<NamedGradient> gradients_;
  std::optional<Place> own_;  // in what this worker contributed
};

}  // namespace elastic
