#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// A number of at most 8 bytes, or a truth value.
template <typename T>
concept Scalar = std::is_arithmetic_v<T> && !std::is_const_v<T> && sizeof(T) <= 8;

/// The elements of a span in the State.
template <typename T>
concept StateElement = Scalar<T> ||(Element<T> && !std::is_const_v<T>);

/// An object that can be moved to another worker as bytes. `save` must give the same bytes for the
/// same state on every worker: their hashes are compared. `load` is given what some `save`
/// returned; where it cannot take that, it throws and leaves the object as it was. Other workers
/// may wait while they run, so in `save`, `load` and `set_members` collectives, `commit`,
/// `save_to`, `load_from`, `run` and `shutdown` throw Error(kInvalidArgument).
template <typename T>
concept Saveable = requires(T& object, const T& constant, std::span<const std::byte> bytes) {
  { constant.save() } -> std::same_as<std::vector<std::byte>>;
  object.load(bytes);
};

/// An object that wants to know the members of the view, in rank order, and which of them this
/// worker is. `run` tells it at the start and after each synchronisation.
template <typename T>
concept MembersAware = requires(T& object, std::span<const WorkerId> members, WorkerId self) {
  object.set_members(members, self);
};

class StateAccess;

/// The state that a joiner must receive to go on as if it had been there from the start:
/// parameters, optimizers, counters, Sampler, GlobalBatch, LearningRate. Refers to the caller's
/// variables; they must outlive it and stay where they are. Vectors may move their elements, but
/// not change their size (see `add`).
///
/// All workers add the same entries, in the same order, before `run`. A worker that does not is
/// refused with the difference.
///
/// Thread safety: none; belongs to the thread that calls `run`. While that thread is in `commit`,
/// the library reads and writes the variables, and no other thread may touch them.
class ELASTIC_API State {
 public:
  /// Has no entries.
  State();
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Adds host memory. Memory of a CUDA device goes into the state as an object (below), as
  /// docs/gpu.md shows.
  /// \throws Error kInvalidArgument, here and below, if `name` is empty or was added before, or if
  ///   the state is already in use by `run`.
  template <StateElement T, std::size_t kExtent>
  void add(std::string_view name, std::span<T, kExtent> data) {
    add_memory(name, type_name<T>(), data.data(), data.size(), sizeof(T));
  }

  /// Adds a tensor in host memory whose element type is known only at run time.
  /// \throws Error kInvalidArgument also for one on a device, and for a dtype that does not exist.
  void add(std::string_view name, TensorView tensor);

  /// Adds the elements of a vector, wherever they lie when the state is used: after a swap or a
  /// move with the same size they are the vector's new elements. The size must not change any
  /// more; `run`, `commit`, `save_to` and `load_from` throw Error(kInvalidArgument) with the
  /// entry's name and both sizes if it has. A span has no such check.
  /// \throws Error kInvalidArgument as above.
  template <StateElement T>
  requires(!std::same_as<T, bool>) void add(std::string_view name, std::vector<T>& data) {
    add_vector(name, type_name<T>(), sizeof(T),
               [&data] { return std::as_writable_bytes(std::span<T>(data)); });
  }

  /// A vector<bool> has no elements in memory: this does not compile, and says so.
  template <std::same_as<bool> T>
  void add(std::string_view /*name*/, std::vector<T>& /*data*/) {
    static_assert(!std::same_as<T, bool>,
                  "elastic: a std::vector<bool> packs its elements into bits and has none in "
                  "memory: keep a std::vector<std::uint8_t> in the State");
  }

  /// Adds a counter, flag or other number.
  /// \throws Error kInvalidArgument as above.
  template <Scalar T>
  void add(std::string_view name, T& scalar) {
    add_memory(name, "scalar " + type_name<T>(), &scalar, 1, sizeof(T));
  }

  /// Adds a text, or vectors in a vector. Their sizes may change: they go with the content.
  /// \throws Error kInvalidArgument as above.
  /// \{
  void add(std::string_view name, std::string& text);
  template <StateElement T>
  requires(!std::same_as<T, bool>) void add(std::string_view name,
                                            std::vector<std::vector<T>>& rows) {
    Object entry{[&rows] {
                   std::vector<std::span<const std::byte>> pieces;
                   for (const auto& row : rows) pieces.push_back(std::as_bytes(std::span(row)));
                   return join_rows(pieces);
                 },
                 [&rows](std::span<const std::byte> bytes) {
                   std::vector<std::vector<T>> loaded;
                   for (const auto& piece : split_rows(bytes, sizeof(T))) {
                     loaded.emplace_back(piece.size() / sizeof(T));
                     std::copy(piece.begin(), piece.end(),
                               std::as_writable_bytes(std::span(loaded.back())).begin());
                   }
                   rows = std::move(loaded);
                 },
                 {}};
    add_object(name, std::move(entry));
  }
  /// \}

  /// Adds an object that knows how to save and load itself. If it has
  /// `set_members(std::span<const WorkerId>, WorkerId)`, as Sampler does, `run` calls that.
  /// \throws Error kInvalidArgument as above.
  template <Saveable T>
  void add(std::string_view name, T& object) {
    Object entry{[&object] { return object.save(); },
                 [&object](std::span<const std::byte> bytes) { object.load(bytes); },
                 {}};
    if constexpr (MembersAware<T>) {
      entry.set_members = [&object](std::span<const WorkerId> members, WorkerId self) {
        object.set_members(members, self);
      };
    }
    add_object(name, std::move(entry));
  }

  /// The step boundary: this worker has finished an optimizer step. Here members wait for each
  /// other when a worker joins or leaves, and only here, so everything in the state must be that of
  /// the finished step. Otherwise it costs no communication, unless Options::compare_steps is set.
  /// Waits for the named operations that this thread has submitted; those of other threads go on.
  /// \throws Error kNotInitialized outside of `run`'s body.
  /// \throws Error kInvalidArgument: a vector in the state has changed its size. The step is not
  ///   committed then.
  /// \throws Error kRemoved, kStopped, kBelowMinimum or kEvicted: the training ends.
  void commit();

  /// \returns the steps committed by the job so far; the same on all members, joiners included. A
  ///   checkpoint that was loaded counts with its steps.
  std::uint64_t commits() const noexcept;

  /// Writes a checkpoint: all entries, the number of commits and the view's generation, with a
  /// checksum. Call it after `commit` (or before `run`), on one worker. The file at `path`, or what
  /// it leads to as a symbolic link, is replaced at once and only by a whole and durable one,
  /// whatever happens meanwhile; the new one has the old one's permissions.
  ///
  /// After an error the file is as it was. There is one exception, which the message names: the
  /// file was replaced and only its folder could not be synced; after a power cut either may be
  /// there.
  /// \throws Error kInvalidArgument: `path` names a folder or another thing that is no file.
  /// \throws Error kUnavailable: the file cannot be written (disk full, no such folder, ...);
  ///   another worker has replaced it meanwhile; or it holds a newer state of the same training (a
  ///   later generation, or more commits in the same; after `load_from` of an older checkpoint also
  ///   a state that this job did not go on from).
  /// \throws Error kEvicted, inside `run`: the job went on without this worker.
  void save_to(const std::string& path) const;

  /// Takes the values and the number of commits from a checkpoint of the same entries. Call it
  /// before `run`. The job's state is that of rank 0 of its first view, so the file is needed
  /// there; the others receive the state, however many they are. After an error other than
  /// kInternal everything is as it was. Exceptions of an object's `save` pass through.
  /// \returns false if there is no such file in an existing folder.
  /// \throws Error kInvalidArgument: the file is no checkpoint, is damaged, or is of another format
  ///   or another state; the message names the difference.
  /// \throws Error kUnavailable: it cannot be read, its folder does not exist, or it is a symbolic
  ///   link to nothing.
  /// \throws Error kInternal: the file changed while it was read, or an object did not take back
  ///   what it had saved. Do not use the state then.
  bool load_from(const std::string& path);

 private:
  friend class StateAccess;
  struct Entries;

  struct Object {
    std::function<std::vector<std::byte>()> save;
    std::function<void(std::span<const std::byte>)> load;
    std::function<void(std::span<const WorkerId>, WorkerId)> set_members;  // empty: does not care
  };

  template <typename T>
  static std::string type_name() {
    if constexpr (std::same_as<T, float16>) return "f16";
    if constexpr (std::same_as<T, bfloat16>) return "bf16";
    if constexpr (std::same_as<T, bool>) return "bool";
    const char* kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
    return kind + std::to_string(8 * sizeof(T));
  }

  void add_memory(std::string_view name, std::string type, void* data, std::size_t count,
                  std::size_t element_bytes);
  void add_vector(std::string_view name, std::string type, std::size_t element_bytes,
                  std::function<std::span<std::byte>()> elements);
  void add_object(std::string_view name, Object object);
  static std::vector<std::byte> join_rows(const std::vector<std::span<const std::byte>>& rows);
  /// Reverse of it. Throws Error(kInvalidArgument) for what it has not made of such elements.
  static std::vector<std::span<const std::byte>> split_rows(std::span<const std::byte> bytes,
                                                            std::size_t element_bytes);

  std::unique_ptr<Entries> entries_;
};

}  // namespace elastic
