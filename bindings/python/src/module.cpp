// elastic._core: the C++ library as Python sees it. Users import elastic/__init__.py.
#include "bindings.hpp"
#include "errors.hpp"
#include "interpreter_lock.hpp"

NB_MODULE(_core, module) {
  namespace python = elastic::python;
  namespace nb = nanobind;
  // Objects that a program leaves in reference cycles, such as an optimizer with its hooks, live to
  // its end.
  nb::set_leak_warnings(false);
  python::watch_for_interpreter_end();
  python::bind_errors(module);
  nb::enum_<elastic::ReduceOp>(module, "ReduceOp",
                               "How contributions are combined, element by element.")
      .value("SUM", elastic::ReduceOp::kSum)
      .value("AVERAGE", elastic::ReduceOp::kAverage)
      .value("MIN", elastic::ReduceOp::kMin)
      .value("MAX", elastic::ReduceOp::kMax)
      .value("PRODUCT", elastic::ReduceOp::kProduct)
      .value("BIT_AND", elastic::ReduceOp::kBitAnd)
      .value("BIT_OR", elastic::ReduceOp::kBitOr)
      .value("BIT_XOR", elastic::ReduceOp::kBitXor)
      .value("LOGICAL_AND", elastic::ReduceOp::kLogicalAnd)
      .value("LOGICAL_OR", elastic::ReduceOp::kLogicalOr)
      .value("LOGICAL_XOR", elastic::ReduceOp::kLogicalXor)
      .value("ADASUM", elastic::ReduceOp::kAdasum)
      .value("HIERARCHICAL_ADASUM", elastic::ReduceOp::kHierarchicalAdasum);
  python::bind_work(module);
  python::bind_root(module);
  python::CollectivesClass collectives(
      module, "Collectives",
      "The collectives of all members of a job (``Context``) or of some of them (``Group``).");
  python::ContextClass context(module, "Context", "One worker's membership in a job.");
  python::bind_context(module, context);
  python::bind_collectives(module, collectives);
  python::bind_grouped_collectives(module, collectives);
  python::bind_gathered_reductions(module, collectives);
  python::bind_personal_collectives(module, collectives);
  python::bind_async_collectives(module, collectives);
  python::bind_messages(module, collectives);
  python::bind_group(module, context);
  python::bind_training(module);
  python::bind_finite_check(module);
  python::bind_gradient_compressor(module);
  python::bind_global_batch(module, context);
  python::bind_optimizers(module);
  python::bind_diagnostics(module, context);
  python::bind_step_group(module);
  python::bind_state(module, context);
}
