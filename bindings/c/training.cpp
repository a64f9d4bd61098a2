// The state that joiners receive, `run`, and the sampler.
#include <cstring>
#include <string>
#include <vector>

#include "guard.hpp"
#include "handles.hpp"

namespace elastic::c {

std::vector<std::byte> CallbackObject::save() const {
  elastic_bytes bytes;
  call_back("an object's save", [&] { return functions_.save(functions_.user, &bytes); });
  return std::move(bytes.value);
}

void CallbackObject::load(std::span<const std::byte> bytes) {
  call_back("an object's load", [&] {
    const elastic_code code = functions_.load(functions_.user, bytes.data(), bytes.size());
    if (load_failed_ == ELASTIC_OK) load_failed_ = code;
    return code;
  });
}

void CallbackObject::set_members(std::span<const WorkerId> members, WorkerId self) {
  if (functions_.set_members == nullptr) return;
  call_back("an object's set_members", [&] {
    return functions_.set_members(functions_.user, members.data(), members.size(), self);
  });
}

/// Makes a call that loads objects. The library ends it with an Error of its own where the `load`
/// of one fails; the program gets the code that its function has returned, with that Error's text.
template <typename Call>
auto loading(elastic_state& state, Call&& call) {
  state.load_failed = ELASTIC_OK;
  try {
    return std::forward<Call>(call)();
  } catch (const Error& error) {
    if (state.load_failed == ELASTIC_OK || error.code() == ErrorCode::kInternal) throw;
    throw CallbackFailed(known_code(state.load_failed), error.what());
  }
}

}  // namespace elastic::c

using namespace elastic::c;

elastic_code elastic_state_create(elastic_state** state) {
  return guarded([&] {
    require(state, "elastic_state_create", "state");
    *state = new elastic_state;
  });
}
void elastic_state_destroy(elastic_state* state) {
  delete state;
}

elastic_code elastic_state_add_tensor(elastic_state* state, const char* name,
                                      const elastic_tensor* tensor) {
  return guarded([&] {
    require(state, "elastic_state_add_tensor", "state");
    require(name, "elastic_state_add_tensor", "name");
    require(tensor, "elastic_state_add_tensor", "tensor");
    state->value.add(name,
                     {tensor->data,
                      tensor->count,
                      static_cast<elastic::DType>(tensor->dtype),
                      {static_cast<elastic::Device::Kind>(tensor->device), tensor->device_index}});
  });
}

elastic_code elastic_state_add_sampler(elastic_state* state, const char* name,
                                       elastic_sampler* sampler) {
  return guarded([&] {
    require(state, "elastic_state_add_sampler", "state");
    require(name, "elastic_state_add_sampler", "name");
    require(sampler, "elastic_state_add_sampler", "sampler");
    state->value.add(name, sampler->value);
  });
}

elastic_code elastic_state_add_object(elastic_state* state, const char* name,
                                      const elastic_object* object) {
  constexpr const char* kCall = "elastic_state_add_object";
  return guarded([&] {
    require(state, kCall, "state");
    require(name, kCall, "name");
    require(object, kCall, "object");
    elastic_object functions{};
    if (object->size < offsetof(elastic_object, set_members)) {
      throw elastic::Error(elastic::ErrorCode::kInvalidArgument,
                           std::string(kCall) + ": set the object's size to sizeof of it first");
    }
    std::memcpy(&functions, object, std::min(object->size, sizeof functions));
    require(reinterpret_cast<const void*>(functions.save), kCall, "save");
    require(reinterpret_cast<const void*>(functions.load), kCall, "load");
    state->objects.emplace_back(functions, state->load_failed);
    try {
      state->value.add(name, state->objects.back());
    } catch (...) {
      state->objects.pop_back();
      throw;
    }
  });
}

elastic_code elastic_bytes_append(elastic_bytes* bytes, const void* data, size_t size) {
  return guarded([&] {
    require(bytes, "elastic_bytes_append", "bytes");
    if (size == 0) return;
    require(data, "elastic_bytes_append", "data");
    const auto* const first = static_cast<const std::byte*>(data);
    bytes->value.insert(bytes->value.end(), first, first + size);
  });
}

elastic_code elastic_state_commit(elastic_state* state) {
  return guarded([&] {
    require(state, "elastic_state_commit", "state");
    state->value.commit();
  });
}
uint64_t elastic_state_commits(const elastic_state* state) {
  return state != nullptr ? state->value.commits() : 0;
}
elastic_code elastic_state_save_to(const elastic_state* state, const char* path) {
  return guarded([&] {
    require(state, "elastic_state_save_to", "state");
    require(path, "elastic_state_save_to", "path");
    state->value.save_to(path);
  });
}
elastic_code elastic_state_load_from(elastic_state* state, const char* path, int* found) {
  return guarded([&] {
    require(state, "elastic_state_load_from", "state");
    require(path, "elastic_state_load_from", "path");
    const bool was_there = loading(*state, [&] { return state->value.load_from(path); });
    if (found != nullptr) *found = was_there ? 1 : 0;
  });
}

elastic_code elastic_run(elastic_context* context, elastic_state* state,
                         elastic_code (*body)(void* user), void* user,
                         elastic_run_outcome* outcome) {
  static_assert(static_cast<int>(elastic::RunOutcome::kFinished) == ELASTIC_FINISHED);
  static_assert(static_cast<int>(elastic::RunOutcome::kRemoved) == ELASTIC_WAS_REMOVED);
  static_assert(static_cast<int>(elastic::RunOutcome::kStopped) == ELASTIC_WAS_STOPPED);
  static_assert(static_cast<int>(elastic::RunOutcome::kLeftOut) == ELASTIC_LEFT_OUT);
  return guarded([&] {
    require(state, "elastic_run", "state");
    require(reinterpret_cast<const void*>(body), "elastic_run", "body");
    const elastic::RunOutcome how = loading(*state, [&] {
      return context_of(context, "elastic_run").run(state->value, [&] {
        call_back("the body of elastic_run", [&] { return body(user); });
      });
    });
    if (outcome != nullptr) *outcome = static_cast<elastic_run_outcome>(how);
  });
}

elastic_code elastic_sampler_create(size_t samples, uint64_t seed, elastic_sampler** sampler) {
  return guarded([&] {
    require(sampler, "elastic_sampler_create", "sampler");
    *sampler = new elastic_sampler{elastic::Sampler(samples, seed)};
  });
}
void elastic_sampler_destroy(elastic_sampler* sampler) {
  delete sampler;
}
elastic_code elastic_sampler_next(elastic_sampler* sampler, size_t batch_per_worker,
                                  const size_t** indices, size_t* count) {
  return guarded([&] {
    require(sampler, "elastic_sampler_next", "sampler");
    require(indices, "elastic_sampler_next", "indices");
    require(count, "elastic_sampler_next", "count");
    const std::span<const std::size_t> share = sampler->value.next(batch_per_worker);
    *indices = share.data();
    *count = share.size();
  });
}
elastic_code elastic_sampler_commit(elastic_sampler* sampler,
                                    const elastic_contributors* const* operations, size_t count) {
  constexpr const char* kCall = "elastic_sampler_commit";
  return guarded([&] {
    require(sampler, kCall, "sampler");
    if (count > 0) require(operations, kCall, "operations");
    std::vector<elastic::Contributors> lists;
    for (size_t i = 0; i < count; ++i) {
      require(operations[i], kCall, "one of the operations");
      lists.push_back(operations[i]->value);
    }
    sampler->value.commit(lists);
  });
}
uint64_t elastic_sampler_epoch(const elastic_sampler* sampler) {
  return sampler != nullptr ? sampler->value.epoch() : 0;
}
int elastic_sampler_is_finished(const elastic_sampler* sampler, uint64_t epochs) {
  return sampler != nullptr && sampler->value.finished(epochs) ? 1 : 0;
}
size_t elastic_sampler_global_batch(const elastic_sampler* sampler) {
  return sampler != nullptr ? sampler->value.global_batch() : 0;
}
