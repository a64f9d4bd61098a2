#include "elastic/state.hpp"

#include <algorithm>
#include <utility>

#include "elastic/error.hpp"
#include "training/boundary.hpp"
#include "training/checkpoint.hpp"
#include "training/state_entries.hpp"

namespace elastic {

State::State() : entries_(std::make_unique<Entries>()) {}
State::~State() = default;

State::Entries::Entry& State::Entries::append(std::string_view name) {
  const std::string quoted = "State: entry '" + std::string(name) + "' ";
  if (boundary != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                quoted + "was added inside elastic::run; add everything before it");
  }
  if (name.empty()) throw Error(ErrorCode::kInvalidArgument, "State: an entry needs a name");
  const bool known =
      std::any_of(list.begin(), list.end(), [&](const Entry& entry) { return entry.name == name; });
  if (known) {
    throw Error(ErrorCode::kInvalidArgument, quoted + "is there already; give each its own name");
  }
  list.push_back({std::string(name), {}, 0, {}, {}});
  return list.back();
}

void State::add_memory(std::string_view name, std::string type, void* data, std::size_t count,
                       std::size_t element_bytes) {
  Entries::Entry& entry = entries_->append(name);
  entry.type = std::move(type);
  entry.count = count;
  entry.memory = {static_cast<std::byte*>(data), count * element_bytes};
}

void State::add_object(std::string_view name, Object object) {
  Entries::Entry& entry = entries_->append(name);
  entry.type = "object";
  entry.object = std::move(object);
}

void State::commit() {
  if (entries_->boundary == nullptr) {
    throw Error(ErrorCode::kNotInitialized,
                "State: commit() outside of elastic::run; call it in run's body, on this state");
  }
  ++entries_->commits;
  entries_->boundary->commit(*this);
}

std::uint64_t State::commits() const noexcept {
  return entries_->commits;
}

void State::save_to(const std::string& path) const {
  training::save_checkpoint(*this, path);
}

bool State::load_from(const std::string& path) {
  if (entries_->boundary != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "State: load_from() inside elastic::run; load before it, since all members have "
                "the same state from there on");
  }
  return training::load_checkpoint(*this, path);
}

namespace training {

Attachment::Attachment(State& state, Boundary& boundary) : state_(state) {
  auto& entries = StateAccess::entries(state);
  if (entries.boundary != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "State: this state is in use by another elastic::run; give each its own");
  }
  entries.boundary = &boundary;
}

Attachment::~Attachment() {
  StateAccess::entries(state_).boundary = nullptr;
}

void set_members(State& state, std::span<const WorkerId> members, WorkerId self) {
  for (const auto& entry : StateAccess::entries(state).list) {
    if (entry.object.set_members) entry.object.set_members(members, self);
  }
}

}  // namespace training
}  // namespace elastic
