#pragma once

#include "elastic/collectives.hpp"
#include "runtime/call_scope.hpp"

namespace elastic::runtime {

/// The scope of a Context or a Group, for collectives that are functions of their own.
class ScopeOf {
 public:
  static ScopeUse get(AsyncCollectives& members) { return members.scope(); }
};

}  // namespace elastic::runtime
