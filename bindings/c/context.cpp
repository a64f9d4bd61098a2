// Options, membership and memory.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

namespace {

elastic::Options values_of(const elastic_options* options) {
  return options != nullptr ? options->values : elastic::Options();
}

}  // namespace

elastic_code elastic_options_create(elastic_options** options) {
  return guarded([&] {
    require(options, "elastic_options_create", "options");
    *options = new elastic_options;
  });
}
void elastic_options_destroy(elastic_options* options) {
  delete options;
}
elastic_code elastic_options_set(elastic_options* options, const char* name, const char* value) {
  return guarded([&] {
    require(options, "elastic_options_set", "options");
    require(name, "elastic_options_set", "name");
    require(value, "elastic_options_set", "value");
    elastic::set_option(options->values, name, value);
  });
}

elastic_code elastic_init(const elastic_options* options) {
  return guarded([&] { elastic::init(values_of(options)); });
}
elastic_code elastic_shutdown(void) {
  return guarded([] { elastic::shutdown(); });
}

elastic_code elastic_context_create(const elastic_options* options, elastic_context** context) {
  return guarded([&] {
    require(context, "elastic_context_create", "context");
    *context = new elastic_context{
        decltype(elastic_context::value)(std::in_place_type<elastic::Context>, values_of(options))};
  });
}
elastic_code elastic_context_shutdown(elastic_context* context) {
  if (context == nullptr) return elastic_shutdown();
  return guarded([&] { context_of(context, "elastic_context_shutdown").shutdown(); });
}
void elastic_context_destroy(elastic_context* context) {
  delete context;
}

elastic_code elastic_get_view(elastic_context* context, elastic_view* view) {
  return guarded([&] {
    const elastic::Context& its = context_of(context, "elastic_get_view");
    fill_struct<elastic_view>(view,
                              {sizeof(elastic_view), its.rank(), its.size(), its.local_rank(),
                               its.local_size(), its.generation(), its.id()},
                              "elastic_get_view");
  });
}
elastic_code elastic_get_members(elastic_context* context, elastic_contributors* members) {
  return guarded([&] {
    const elastic::Group* const group = group_of(context);
    fill(members, group != nullptr ? group->members()
                                   : context_of(context, "elastic_get_members").members());
  });
}
int elastic_rank(elastic_context* context) {
  int rank = -1;
  (void)guarded([&] {
    const elastic::Group* const group = group_of(context);
    rank = group != nullptr ? group->rank() : context_of(context, "elastic_rank").rank();
  });
  return rank;
}
int elastic_size(elastic_context* context) {
  int size = 0;
  (void)guarded([&] {
    const elastic::Group* const group = group_of(context);
    size = group != nullptr ? group->size() : context_of(context, "elastic_size").size();
  });
  return size;
}

elastic_code elastic_allocate(elastic_context* context, size_t bytes,
                              elastic_allocation** allocation) {
  return guarded([&] {
    require(allocation, "elastic_allocate", "allocation");
    *allocation = new elastic_allocation{context_of(context, "elastic_allocate").allocate(bytes)};
  });
}
void* elastic_allocation_data(const elastic_allocation* allocation) {
  return allocation != nullptr ? allocation->memory.data() : nullptr;
}
void elastic_allocation_destroy(elastic_allocation* allocation) {
  delete allocation;
}
