#include "elastic/finite_check.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/log.hpp"
#include "collectives/kernels/finite.hpp"
#include "elastic/context.hpp"
#include "elastic/elastic.hpp"
#include "elastic/error.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {
namespace {

/// The first gradient of a worker that is not finite, and the element; or kNone.
using Message = std::array<std::int64_t, 2>;
constexpr std::int64_t kNone = -1;

}  // namespace

FiniteCheck::FiniteCheck(std::vector<NamedGradient> gradients)
    : FiniteCheck(context(), std::move(gradients)) {}

FiniteCheck::FiniteCheck(Context& context, std::vector<NamedGradient> gradients)
    : context_(context), policy_(context.options().non_finite), gradients_(std::move(gradients)) {
  for (const NamedGradient& gradient : gradients_)
    runtime::check_host(gradient.values, "FiniteCheck");
}

void FiniteCheck::begin_step() noexcept {
  own_.reset();
}

void FiniteCheck::before_sum() {
  if (policy_ == NonFinite::kError && !own_) own_ = find();
}

bool FiniteCheck::after_sum() {
  if (policy_ == NonFinite::kPass) return true;
  const std::optional<Place> own = std::exchange(own_, std::nullopt);
  const std::optional<Place> in_sum = find();
  if (!in_sum) return true;
  if (policy_ == NonFinite::kError) fail(*in_sum, own);
  if (context_.rank() == 0) {
    log::warn("step skipped: NaN or Inf in the sum of gradient '{}', element {}",
              gradients_[in_sum->gradient].name, in_sum->element);
  }
  return false;
}

std::optional<FiniteCheck::Place> FiniteCheck::find() const {
  for (std::size_t at = 0; at < gradients_.size(); ++at) {
    const ConstTensorView& values = gradients_[at].values;
    const std::size_t element = kernels::first_not_finite(values.dtype, values.data, values.count);
    if (element < values.count) return Place{at, element};
  }
  return std::nullopt;
}

void FiniteCheck::fail(const Place& in_sum, const std::optional<Place>& own) {
  Message message{kNone, kNone};
  if (own) {
    message = {static_cast<std::int64_t>(own->gradient), static_cast<std::int64_t>(own->element)};
  }
  const auto told = context_.allgather(std::span<const std::int64_t>(message));
  // Programs mostly end with this error. The first that does must not make the others ask again
  // without it: each has the answer before any of them goes on.
  context_.barrier();
  const std::string remedy = " (the option non_finite=skip leaves such a step out)";
  for (std::size_t at = 0; at + 1 < told.values.size(); at += message.size()) {
    if (told.values[at] == kNone) continue;
    const auto rank = static_cast<int>(at / message.size());
    throw Error(ErrorCode::kNotFinite,
                "NaN or Inf in gradient '" +
                    gradients_[static_cast<std::size_t>(told.values[at])].name + "' of rank " +
                    std::to_string(rank) + ", element " + std::to_string(told.values[at + 1]) +
                    remedy,
                rank, told.contributors.generation());
  }
  throw Error(ErrorCode::kNotFinite,
              "NaN or Inf in the sum of gradient '" + gradients_[in_sum.gradient].name +
                  "', element " + std::to_string(in_sum.element) +
                  ": it overflowed, or came from a worker that is gone" + remedy,
              -1, told.contributors.generation());
}

}  // namespace elastic
