#include "runtime/applied_rule.hpp"

#include <string>
#include <utility>

#include "elastic/error.hpp"

namespace elastic::runtime {

namespace {
constinit thread_local bool applies_rule = false;
}  // namespace

AppliedRule::AppliedRule() noexcept
    : callback_("the function of a group's rule"), outer_(std::exchange(applies_rule, true)) {}

AppliedRule::~AppliedRule() {
  applies_rule = outer_;
}

void refuse_in_rule(const char* call) {
  if (!applies_rule) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(call) +
                  " was called in the function of a group's rule, while that group is made; such a "
                  "function asks no group: it chooses by its arguments alone");
}

}  // namespace elastic::runtime
