#pragma once

#include <utility>

#include <elastic/collectives.hpp>
#include <elastic/elastic.hpp>
#include <nanobind/nanobind.h>

namespace elastic::python {

namespace nb = nanobind;

/// The base of Context and Group.
using CollectivesClass = nb::class_<Collectives>;
using ContextClass = nb::class_<Context, Collectives>;

void bind_context(nb::module_& module, ContextClass& context);
void bind_collectives(nb::module_& module, CollectivesClass& context);
void bind_grouped_collectives(nb::module_& module, CollectivesClass& context);
void bind_root(nb::module_& module);
void bind_gathered_reductions(nb::module_& module, CollectivesClass& context);
void bind_personal_collectives(nb::module_& module, CollectivesClass& context);
void bind_async_collectives(nb::module_& module, CollectivesClass& context);
void bind_messages(nb::module_& module, CollectivesClass& members);
void bind_work(nb::module_& module);
void bind_step_group(nb::module_& module);
void bind_group(nb::module_& module, ContextClass& context);
void bind_state(nb::module_& module, ContextClass& context);
void bind_training(nb::module_& module);
void bind_finite_check(nb::module_& module);
void bind_gradient_compressor(nb::module_& module);
void bind_global_batch(nb::module_& module, ContextClass& context);
void bind_optimizers(nb::module_& module);
void bind_diagnostics(nb::module_& module, ContextClass& context);

/// Defines `function`, whose first parameter is a Context or Collectives, as a method of this class
/// and as a function on the default context.
template <typename Class, typename... Bases, typename Return, typename... Arguments,
          typename... Extra>
void define(nb::module_& module, nb::class_<Class, Bases...>& methods, const char* name,
            Return (*function)(Class&, Arguments...), const Extra&... extra) {
  methods.def(name, function, extra...);
  module.def(
      name,
      [function](Arguments... arguments) {
        return function(elastic::context(), std::forward<Arguments>(arguments)...);
      },
      extra...);
}

}  // namespace elastic::python
