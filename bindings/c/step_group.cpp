// The gradients of a training step as one unit.
#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

elastic_code elastic_step_group_create(elastic_context* context, elastic_step_group** group) {
  return guarded([&] {
    require(group, "elastic_step_group_create", "group");
    *group = new elastic_step_group{
        elastic::StepGroup(context_of(context, "elastic_step_group_create"))};
  });
}
void elastic_step_group_destroy(elastic_step_group* group) {
  delete group;
}
elastic_code elastic_step_group_allreduce(elastic_step_group* group, const char* name,
                                          const elastic_tensor* in, const elastic_tensor* out,
                                          elastic_op op) {
  constexpr const char* kCall = "elastic_step_group_allreduce";
  return guarded([&] {
    require(group, kCall, "group");
    require(name, kCall, "name");
    group->value.allreduce(name, tensor_of(in, kCall, "in"), tensor_of(out, kCall, "out"),
                           op_of(op, kCall));
  });
}
elastic_code elastic_step_group_wait(elastic_step_group* group,
                                     elastic_contributors* contributors) {
  return guarded([&] {
    require(group, "elastic_step_group_wait", "group");
    fill(contributors, group->value.wait());
  });
}
size_t elastic_step_group_open(const elastic_step_group* group) {
  return group != nullptr ? group->value.open() : 0;
}
size_t elastic_step_group_kept_bytes(const elastic_step_group* group) {
  return group != nullptr ? group->value.kept_bytes() : 0;
}
