#pragma once

#include "base/in_callback.hpp"

namespace elastic::runtime {

/// The calling thread applies the rule of a group for as long as this lives. The group is locked
/// meanwhile, so the rule's function would wait for itself if it asked a group for anything.
/// Collectives are refused as well.
class AppliedRule {
 public:
  AppliedRule() noexcept;
  ~AppliedRule();
  AppliedRule(const AppliedRule&) = delete;
  AppliedRule& operator=(const AppliedRule&) = delete;

 private:
  const InCallback callback_;
  const bool outer_;  // a rule's function may apply another rule by itself
};

/// Throws Error(kInvalidArgument) in the function of a rule. `call` is what the program has called.
void refuse_in_rule(const char* call);

}  // namespace elastic::runtime
