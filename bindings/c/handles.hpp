#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/interrupt.hpp>
#include <elastic/step_group.hpp>
#include <elastic/training.hpp>

#include "elastic.h"

// The objects behind the handles of elastic.h.

struct elastic_options {
  elastic::Options values;
};

struct elastic_context {
  elastic::Context context;
};

struct elastic_allocation {
  elastic::Allocation memory;
};

struct elastic_contributors {
  elastic::Contributors value;
};

struct elastic_work {
  elastic::Work value;
  // Besides the contributors, if the operation has one.
  std::variant<std::monostate, elastic::Pending<elastic::GatheredBlocks>,
               elastic::Pending<elastic::ScatteredPart>>
      result = {};
};

struct elastic_step_group {
  elastic::StepGroup value;
};

struct elastic_sampler {
  elastic::Sampler value;
};

struct elastic_schedule {
  elastic::Schedule value;
};

struct elastic_learning_rate {
  elastic::LearningRate value;
};

struct elastic_finite_check {
  elastic::FiniteCheck value;
};

struct elastic_compressor {
  elastic::GradientCompressor value;
};

struct elastic_global_batch {
  elastic::GlobalBatch value;
};

struct elastic_random {
  elastic::RandomStream* value;  // of a part of a batch
};

struct elastic_loading {
  elastic::LoadingData value;
};

struct elastic_interrupt {
  elastic::InterruptCheck value;
};

struct elastic_bytes {
  std::vector<std::byte> value;
};

namespace elastic::c {

/// An object of the State by the functions of an elastic_object.
class CallbackObject {
 public:
  /// `load_failed`: receives the code of a `load` that fails.
  CallbackObject(const elastic_object& functions, elastic_code& load_failed)
      : functions_(functions), load_failed_(load_failed) {}

  std::vector<std::byte> save() const;
  void load(std::span<const std::byte> bytes);
  void set_members(std::span<const WorkerId> members, WorkerId self);

 private:
  elastic_object functions_;
  elastic_code& load_failed_;
};

}  // namespace elastic::c

struct elastic_state {
  elastic_code load_failed = ELASTIC_OK;           // the first of a call
  std::deque<elastic::c::CallbackObject> objects;  // before `value`, which refers to them
  elastic::State value;
};

namespace elastic::c {

/// The context that `handle` stands for: NULL for the default one.
inline Context& context_of(elastic_context* handle) {
  return handle != nullptr ? handle->context : context();
}

}  // namespace elastic::c
