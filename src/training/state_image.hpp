#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "elastic/state.hpp"

namespace elastic::training {

/// What a State consists of, without its values. Two workers whose layouts differ cannot train
/// together.
struct LayoutEntry {
  std::string name;
  std::string type;         ///< "f32", "scalar i64", "object"
  std::uint64_t count = 0;  ///< elements; 0 for objects, whose size may vary

  bool operator==(const LayoutEntry&) const = default;
};

/// In order of addition.
std::vector<LayoutEntry> layout(const State& state);

/// The state's values and its number of commits in one piece: a 64-byte header, then for each entry
/// a 64-byte header (bytes, hash) and its bytes, padded with zeros to a multiple of 64. Equal
/// states have equal images. What an object's `save` throws passes through.
using Image = std::vector<std::byte>;
Image serialize(const State& state);

/// The size of its image as of now: an object's part may have another on another worker.
std::uint64_t image_bytes(const State& state);

/// Gives `state` the values of `image`. Checks length, layout and hashes of the whole image before
/// it changes anything, and takes back what it changed where an object does not accept its part, so
/// the state is either wholly the image's or as it was. A failure names the entry.
Status restore(State& state, std::span<const std::byte> image);

/// xxh3 (64 bits) of the bytes of each entry, in order of addition. Equal states have equal hashes.
std::vector<std::uint64_t> hashes(const State& state);

/// One hash for all: of the entries' names, types and hashes, and the number of commits.
std::uint64_t total_hash(const State& state);

}  // namespace elastic::training
