#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "elastic/context.hpp"
#include "elastic/group.hpp"

namespace elastic {

/// The groups of a context, which live as long as it.
///
/// Any thread.
struct Context::Groups {
  /// Each rule chooses among the members that the rule before it has chosen.
  Group& of(Context& context, std::vector<GroupRule> rules);
  std::vector<Group*> all() const;

  mutable Mutex mutex;
  /// By the names of the rules.
  std::map<std::vector<std::string>, std::unique_ptr<Group>> by_rules ELASTIC_GUARDED_BY(mutex);
};

}  // namespace elastic
