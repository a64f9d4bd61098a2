#include "model_group.hpp"

#include <utility>

#include "group_rules.hpp"
#include "model_worker.hpp"

namespace elastic::simulation {

ModelGroup::ModelGroup(ModelWorker& worker, std::size_t group)
    : worker_(worker), membership_(group_rules(group)) {}

void ModelGroup::renew() {
  membership_.renew(worker_.roster(), id_of(worker_.process().self()), worker_.joins());
}

bool ModelGroup::has_this_worker() {
  renew();
  return membership_.present(*worker_.members())->rank >= 0;
}

const std::vector<WorkerId>& ModelGroup::workers() {
  renew();
  return *membership_.workers();
}

/// Models Group::Impl::submit_named.
Result<std::shared_ptr<detail::WorkState>> ModelGroup::submit(coordinator::TensorRequest request,
                                                              Make make) {
  renew();
  coordinator::NamedCall call{.request = std::move(request), .make = std::move(make)};
  latest_name_ = membership_.name_call(call.request.name);
  call.request.name = latest_name_;
  call.group = membership_.workers();
  return worker_.coordinator().submit(std::move(call));
}

}  // namespace elastic::simulation
