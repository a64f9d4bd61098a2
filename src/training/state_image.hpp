#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/layout.hpp"
#include "base/status.hpp"
#include "elastic/state.hpp"

namespace elastic::training {

/// The entries of the state, in order of addition.
Layout layout(const State& state);

/// Memory entries of at least this many bytes are not copied into an image: they are sent in place.
inline constexpr std::size_t kLargeEntry = 64 * 1024;

/// The state's number of commits and its values but for the large entries', in one piece: a 64-byte
/// header, then for each entry a 64-byte header (bytes, hash) and its bytes, padded with zeros to a
/// multiple of 64. Equal states have equal images. Exceptions of an object's `save` pass through.
using Image = std::vector<std::byte>;
Image serialize(const State& state);

/// The bytes that a joiner would be sent now: an object's part may have another size on another
/// worker.
std::uint64_t image_bytes(const State& state);

/// Whether an image of the job's state can have `bytes` bytes, by this worker's entries: tensors
/// have the same sizes there, objects may have others. For a number that came from another worker,
/// before memory is taken for it. kMismatch says what does not fit.
Status check_image_bytes(const State& state, std::uint64_t bytes);

/// Where the large entries lie, in order of addition.
std::vector<std::span<std::byte>> large_entries(const State& state);

/// Gives `state` the values of `image` and, to its large entries, those of `large`. Checks length,
/// layout and the image's hashes before it changes anything, and takes back what it changed where
/// an object does not accept its part, so the state is either wholly what was given or as it was;
/// but for kInternal: an object did not take back what it had saved. A failure names the entry.
/// The data of `large` is not checked: compare the result, which is what `hashes` would say of the
/// state now.
Result<std::vector<std::uint64_t>> restore(State& state, std::span<const std::byte> image,
                                           std::span<const std::span<const std::byte>> large = {});

/// The same without the large entries, which stay as they are: for callers that fill them in place.
Status restore_all_but_large(State& state, std::span<const std::byte> image);

/// xxh3 (64 bits) of the bytes of each entry, in order of addition. Equal states have equal hashes.
std::vector<std::uint64_t> hashes(const State& state);

}  // namespace elastic::training
