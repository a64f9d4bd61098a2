#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/error.hpp>
#include <elastic/group.hpp>
#include <elastic/interrupt.hpp>
#include <elastic/sparse_allreduce.hpp>
#include <elastic/step_group.hpp>
#include <elastic/training.hpp>

#include "elastic.h"

// The objects behind the handles of elastic.h.

struct elastic_options {
  elastic::Options values;
};

/// A context of the program's own, or a group, which belongs to its context.
struct elastic_context {
  std::variant<elastic::Context, elastic::Group*> value;
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
               elastic::Pending<elastic::ScatteredPart>, elastic::Pending<elastic::ReceivedMessage>,
               elastic::PendingSparseRows, elastic::Pending<elastic::ScatteredTensors>,
               elastic::Pending<elastic::GatheredTensors>>
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

/// The group that `handle` is; null if it is a context.
inline Group* group_of(const elastic_context* handle) {
  if (handle == nullptr) return nullptr;
  Group* const* const group = std::get_if<Group*>(&handle->value);
  return group != nullptr ? *group : nullptr;
}

/// The context that `handle` stands for: NULL for the default one.
/// \throws Error kInvalidArgument: it is a group, which `call` does not take.
inline Context& context_of(elastic_context* handle, const char* call) {
  if (handle == nullptr) return context();
  if (const Group* const group = group_of(handle)) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) + ": it is for a context, not for the group '" + group->name() +
                    "'; give the context that the group is of");
  }
  return std::get<Context>(handle->value);
}

/// The collectives of the context or group that `handle` stands for.
inline Collectives& collectives_of(elastic_context* handle) {
  if (handle == nullptr) return context();
  if (Group* const group = group_of(handle)) return *group;
  return std::get<Context>(handle->value);
}

}  // namespace elastic::c
