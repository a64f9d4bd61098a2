// Groups: handles that the collectives take in the place of a context.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <elastic/group.hpp>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

namespace {

/// Makes the handle of the group by the rule that `make` returns.
template <typename Make>
elastic_code grouped(elastic_context* context, const char* call, elastic_group** group,
                     const Make& make) noexcept {
  return guarded([&] {
    require(group, call, "group");
    const elastic::GroupRule rule = make();
    elastic::Group* const outer = group_of(context);
    elastic::Group& its =
        outer != nullptr ? outer->group(rule) : context_of(context, call).group(rule);
    *group = new elastic_group{&its};
  });
}

/// A function of the program as a rule chooses.
elastic::GroupRule::Choose choosing(elastic_choose_members choose, void* user) {
  return [choose, user](std::span<const elastic::GroupMember> members, elastic::WorkerId self) {
    std::vector<std::uint64_t> workers;
    std::vector<int> hosts;
    for (const elastic::GroupMember& each : members) {
      workers.push_back(each.id);
      hosts.push_back(each.host);
    }
    std::vector<unsigned char> chosen(members.size());
    call_back("the function of the group's rule", [&] {
      return choose(user, workers.data(), hosts.data(), workers.size(), self, chosen.data());
    });
    std::vector<elastic::WorkerId> ids;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] != 0) ids.push_back(workers[i]);
    }
    return ids;
  };
}

}  // namespace

elastic_code elastic_group_per_host(elastic_context* context, elastic_group** group) {
  return grouped(context, "elastic_group_per_host", group,
                 [] { return elastic::GroupRule::per_host(); });
}

elastic_code elastic_group_across_hosts(elastic_context* context, elastic_group** group) {
  return grouped(context, "elastic_group_across_hosts", group,
                 [] { return elastic::GroupRule::across_hosts(); });
}

elastic_code elastic_group_every(elastic_context* context, int step, int first,
                                 elastic_group** group) {
  return grouped(context, "elastic_group_every", group,
                 [&] { return elastic::GroupRule::every(step, first); });
}

elastic_code elastic_group_ranks(elastic_context* context, const int* ranks, size_t count,
                                 elastic_group** group) {
  constexpr const char* kCall = "elastic_group_ranks";
  return grouped(context, kCall, group, [&] {
    if (count > 0) require(ranks, kCall, "ranks");
    return elastic::GroupRule::ranks({ranks, ranks + count});
  });
}

elastic_code elastic_group_workers(elastic_context* context, const uint64_t* workers, size_t count,
                                   elastic_group** group) {
  constexpr const char* kCall = "elastic_group_workers";
  return grouped(context, kCall, group, [&] {
    if (count > 0) require(workers, kCall, "workers");
    return elastic::GroupRule::workers({workers, workers + count});
  });
}

elastic_code elastic_group_by(elastic_context* context, const char* name,
                              elastic_choose_members choose, void* user, elastic_group** group) {
  constexpr const char* kCall = "elastic_group_by";
  return grouped(context, kCall, group, [&] {
    require(name, kCall, "name");
    require(reinterpret_cast<const void*>(choose), kCall, "choose");
    return elastic::GroupRule::by(name, choosing(choose, user));
  });
}

const char* elastic_group_name(const elastic_group* group) {
  const elastic::Group* const its = group_of(group);
  return its != nullptr ? its->name().c_str() : nullptr;
}

void elastic_group_destroy(elastic_group* group) {
  delete group;
}
