#include "elastic/state.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/dtype_names.hpp"
#include "base/in_callback.hpp"
#include "base/tensor_bytes.hpp"
#include "elastic/error.hpp"
#include "training/boundary.hpp"
#include "training/checkpoint.hpp"
#include "training/state_entries.hpp"

namespace elastic {

State::State() : entries_(std::make_unique<Entries>()) {}
State::~State() = default;

State::Entries::Entry& State::Entries::append(std::string_view name) {
  refuse_in_callback("State::add");
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
  list.emplace_back();
  list.back().name = name;
  return list.back();
}

std::span<std::byte> State::Entries::Entry::memory() const {
  const std::span<std::byte> present = elements();
  if (present.size() == bytes()) return present;
  throw Error(ErrorCode::kInvalidArgument,
              "State: the vector of entry '" + name + "' had " + std::to_string(count) +
                  " elements when it was added and has " +
                  std::to_string(present.size() / element_bytes) +
                  " now; give it its size before State::add, and keep it");
}

void State::Entries::check_sizes() const {
  for (const Entry& entry : list) {
    if (!entry.is_object()) (void)entry.memory();
  }
}

void State::Entries::see_generation() {
  const std::uint64_t present = boundary == nullptr ? 0 : boundary->generation();
  if (present == 0) return;
  if (present < generation_in_job) generations_before += generation_in_job;
  generation_in_job = present;
}

void State::add_memory(std::string_view name, std::string type, void* data, std::size_t count,
                       std::size_t element_bytes) {
  if (element_bytes > 0 && !can_exist(count, element_bytes)) {
    throw Error(ErrorCode::kInvalidArgument,
                "State: entry '" + std::string(name) + "' has " + std::to_string(count) +
                    " elements of " + std::to_string(element_bytes) +
                    " bytes, more than any memory has; the count is wrong");
  }
  Entries::Entry& entry = entries_->append(name);
  entry.type = std::move(type);
  entry.count = count;
  entry.element_bytes = element_bytes;
  entry.elements = [memory = std::span(static_cast<std::byte*>(data), entry.bytes())] {
    return memory;
  };
}

void State::add(std::string_view name, TensorView tensor) {
  const std::string which = "State: entry '" + std::string(name) + "' ";
  if (tensor.device.kind != Device::Kind::kHost) {
    throw Error(ErrorCode::kInvalidArgument,
                which + "is not in host memory: add an object that copies it from the device");
  }
  const std::size_t element_bytes = size_of(tensor.dtype);
  if (element_bytes == 0) {
    throw Error(ErrorCode::kInvalidArgument, which + "has element type " +
                                                 std::to_string(static_cast<int>(tensor.dtype)) +
                                                 ", which does not exist");
  }
  if (tensor.data == nullptr && tensor.count > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                which + "has " + std::to_string(tensor.count) + " elements and no memory");
  }
  add_memory(name, dtype_name(tensor.dtype), tensor.data, tensor.count, element_bytes);
}

void State::add_vector(std::string_view name, std::string type, std::size_t element_bytes,
                       std::function<std::span<std::byte>()> elements) {
  Entries::Entry& entry = entries_->append(name);
  entry.type = std::move(type);
  entry.count = elements().size() / element_bytes;
  entry.element_bytes = element_bytes;
  entry.elements = std::move(elements);
}

void State::add_object(std::string_view name, Object object) {
  Entries::Entry& entry = entries_->append(name);
  entry.type = "object";
  const std::string of = " of the state entry '" + entry.name + "'";
  entry.object.save = [save = std::move(object.save), what = "save()" + of] {
    const InCallback callback(what);
    return save();
  };
  entry.object.load = [load = std::move(object.load),
                       what = "load()" + of](std::span<const std::byte> bytes) {
    const InCallback callback(what);
    load(bytes);
  };
  if (!object.set_members) return;
  entry.object.set_members = [set = std::move(object.set_members), what = "set_members()" + of](
                                 std::span<const WorkerId> members, WorkerId self) {
    const InCallback callback(what);
    set(members, self);
  };
}

void State::add(std::string_view name, std::string& text) {
  add_object(name, {[&text] {
                      const auto bytes = std::as_bytes(std::span(text));
                      return std::vector<std::byte>(bytes.begin(), bytes.end());
                    },
                    [&text](std::span<const std::byte> bytes) {
                      text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                    },
                    {}});
}

/// The bytes of each row behind their number.
std::vector<std::byte> State::join_rows(const std::vector<std::span<const std::byte>>& rows) {
  std::vector<std::byte> all;
  for (const auto& row : rows) {
    const std::uint64_t size = row.size();
    const auto head = std::as_bytes(std::span(&size, 1));
    all.insert(all.end(), head.begin(), head.end());
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

std::vector<std::span<const std::byte>> State::split_rows(std::span<const std::byte> bytes,
                                                          std::size_t element_bytes) {
  std::vector<std::span<const std::byte>> rows;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
    if (bytes.size() < sizeof size || size > bytes.size() - sizeof size ||
        size % element_bytes != 0) {
      throw Error(ErrorCode::kInvalidArgument, "State: these bytes are no vectors of elements of " +
                                                   std::to_string(element_bytes) + " bytes each");
    }
    rows.push_back(bytes.subspan(sizeof size, static_cast<std::size_t>(size)));
    bytes = bytes.subspan(sizeof size + rows.back().size());
  }
  return rows;
}

void State::commit() {
  refuse_in_callback("State::commit");
  if (entries_->boundary == nullptr) {
    throw Error(ErrorCode::kNotInitialized,
                "State: commit() outside of elastic::run; call it in run's body, on this state");
  }
  entries_->check_sizes();
  entries_->boundary->before_commit();
  ++entries_->commits;
  entries_->boundary->commit(*this);
}

std::uint64_t State::commits() const noexcept {
  return entries_->commits;
}

void State::save_to(const std::string& path) const {
  refuse_in_callback("State::save_to");
  entries_->check_sizes();
  if (entries_->boundary != nullptr) entries_->boundary->check_membership();
  entries_->see_generation();
  training::save_checkpoint(*this, path);
}

bool State::load_from(const std::string& path) {
  refuse_in_callback("State::load_from");
  if (entries_->boundary != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "State: load_from() inside elastic::run; load before it, since all members have "
                "the same state from there on");
  }
  entries_->check_sizes();
  return training::load_checkpoint(*this, path);
}

namespace training {

Attachment::Attachment(State& state, Boundary& boundary) : state_(state) {
  auto& entries = StateAccess::entries(state);
  if (entries.boundary != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "State: this state is in use by another elastic::run; give each its own");
  }
  entries.check_sizes();
  if (std::exchange(entries.loaded, false)) {
    entries.training = new_branch(entries.training);
    entries.commits_before = entries.commits;
  }
  entries.boundary = &boundary;
}

Attachment::~Attachment() {
  StateAccess::entries(state_).see_generation();
  StateAccess::entries(state_).boundary = nullptr;
}

void set_members(State& state, std::span<const WorkerId> members, WorkerId self) {
  for (const auto& entry : StateAccess::entries(state).list) {
    if (entry.object.set_members) entry.object.set_members(members, self);
  }
}

}  // namespace training
}  // namespace elastic
