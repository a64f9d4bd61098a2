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

/// A gradient, and what messages call it. Does not own it.
struct NamedGradient {
  std::string name;
  ConstTensorView values;
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
  /// On the default context. The gradients are summed in place, and must outlive this.
  explicit FiniteCheck(std::vector<NamedGradient> gradients);
  FiniteCheck(Context& context, std::vector<NamedGradient> gradients);

  /// Forgets what `before_sum` saw: of a step whose sum threw, so that the next one's error does
  /// not name its rank. May be left out if no step is repeated after an Error.
  void begin_step() noexcept;
  /// Looks at what this worker contributes, where it may have to be named. Where that is made of
  /// several parts (VirtualBatch), after each of them: the first that is not finite counts.
  void before_sum();
  /// Looks at the sum. True: use it. False: skip the step. Throws Error(kNotFinite) on all ranks
  /// alike, which names rank and gradient; its peer() is that rank, or -1 where the numbers were
  /// finite and their sum was not, or if the rank that brought them is gone.
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
