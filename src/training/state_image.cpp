#include "training/state_image.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include "base/hash.hpp"
#include "training/state_entries.hpp"

namespace elastic::training {
namespace {

using Entry = StateAccess::Entry;

constexpr std::size_t kAlignment = 64;
/// The limit of one object in an image, which is copied several times: larger data belongs into
/// tensors.
constexpr std::uint64_t kMostObjectBytes = std::uint64_t{64} << 30;
constexpr std::uint64_t kMagic = 0x3245544154534c45U;  // "ELSTATE2" as little-endian bytes

/// First 64 bytes of an image; the rest of them is zero.
struct ImageHeader {
  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;  // of the image, this header included
  std::uint64_t entries = 0;
  std::uint64_t commits = 0;
  std::uint64_t training = 0;            // 0: of an image that does not say it
  std::uint64_t generations_before = 0;  // the job's first
  std::uint64_t commits_before = 0;      // at the job's start
};

/// The 64 bytes before an entry's own; the rest of them is zero.
struct EntryHeader {
  std::uint64_t bytes = 0;  // without padding
  std::uint64_t hash = 0;
};

/// Where an entry's bytes lie in an image.
struct Part {
  std::uint64_t hash = 0;
  std::span<const std::byte> bytes;
};

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename Header>
void write_at(Image& image, std::size_t at, const Header& header) {
  static_assert(sizeof(Header) <= kAlignment);
  std::memcpy(image.data() + at, &header, sizeof(header));
}

template <typename Header>
Header read_at(std::span<const std::byte> image, std::size_t at) {
  Header header;
  std::memcpy(&header, image.data() + at, sizeof(header));
  return header;
}

/// Copies, and hashes what it has written, a piece at a time while that is in the cache.
std::uint64_t copy_and_hash(std::span<const std::byte> from, std::span<std::byte> into) {
  constexpr std::size_t kPiece = std::size_t{128} * 1024;
  PiecewiseHash hash;
  for (std::size_t at = 0; at < from.size(); at += kPiece) {
    const std::span<std::byte> piece = into.subspan(at, std::min(kPiece, from.size() - at));
    std::memcpy(piece.data(), from.data() + at, piece.size());
    hash.add(piece);
  }
  return hash.value();
}

bool is_large(const Entry& entry) {
  return entry.bytes() >= kLargeEntry;
}

/// Calls `use(bytes)` with an entry's bytes. An object's exist only during the call.
template <typename Use>
void with_bytes(const Entry& entry, Use use) {
  if (entry.is_object()) {
    const std::vector<std::byte> saved = entry.object.save();
    use(std::span<const std::byte>(saved));
  } else {
    use(std::span<const std::byte>(entry.memory()));
  }
}

Status bad(const std::string& message) {
  return Status(Code::kMismatch, "the state that was received " + message);
}

Status bad(const Entry& entry, const std::string& message) {
  return Status(Code::kMismatch, "state entry '" + entry.name + "': " + message);
}

Status refused(const Entry& entry, const std::string& message) {
  return Status(Code::kRefused, "state entry '" + entry.name + "': " + message);
}

Result<ImageHeader> check_header(std::span<const std::byte> image, std::size_t entries) {
  if (image.size() < kAlignment) {
    return bad("is cut short: " + std::to_string(image.size()) + " bytes");
  }
  const auto header = read_at<ImageHeader>(image, 0);
  if (header.magic != kMagic) return bad("is of another format; run the same library version");
  if (header.bytes != image.size()) {
    return bad("has " + std::to_string(image.size()) + " bytes, and should have " +
               std::to_string(header.bytes));
  }
  if (header.entries != entries) {
    return bad("has " + std::to_string(header.entries) + " entries and this worker's has " +
               std::to_string(entries) + "; add the same entries on every worker");
  }
  return header;
}

Status check_part(const Entry& entry, const Part& part) {
  if (!entry.is_object() && part.bytes.size() != entry.bytes()) {
    return bad(entry, "received " + std::to_string(part.bytes.size()) + " bytes for " +
                          std::to_string(entry.bytes()) +
                          "; give it the same size on every worker");
  }
  if (hash_of(part.bytes) != part.hash) return bad(entry, "its bytes were damaged on the way");
  return {};
}

Status check_large(std::span<const std::span<const std::byte>> large,
                   const std::vector<Entry>& list) {
  for (const Entry& entry : list) {
    if (!is_large(entry)) continue;
    if (large.empty() || large.front().size() != entry.bytes()) {
      return bad(entry, "its bytes are missing or of another size");
    }
    large = large.subspan(1);
  }
  return {};
}

/// Finds and checks the bytes of every entry in the image; large ones are not there.
Result<std::vector<Part>> parts(std::span<const std::byte> image, const std::vector<Entry>& list) {
  std::vector<Part> found;
  std::size_t at = kAlignment;
  for (const Entry& entry : list) {
    if (is_large(entry)) {
      found.emplace_back();
      continue;
    }
    if (image.size() - at < kAlignment) return bad(entry, "its header is cut off");
    const auto header = read_at<EntryHeader>(image, at);
    at += kAlignment;
    const std::uint64_t left = image.size() - at;
    if (header.bytes > left || padded(header.bytes) > left) {
      return bad(entry, "is cut short: " + std::to_string(left) + " bytes are left of " +
                            std::to_string(header.bytes));
    }
    found.push_back({header.hash, image.subspan(at, header.bytes)});
    if (Status status = check_part(entry, found.back()); !status.ok()) return status;
    at += padded(header.bytes);
  }
  if (at != image.size()) {
    return bad("has " + std::to_string(image.size() - at) + " bytes more than its entries");
  }
  return found;
}

Status load(const Entry& entry, std::span<const std::byte> bytes) {
  try {
    entry.object.load(bytes);
    return {};
  } catch (const std::exception& error) {
    return refused(entry, error.what());
  } catch (...) {
    return refused(entry, "its load() threw something that is no std::exception");
  }
}

/// Loads all objects, or none: one that refuses makes those before it load what they had saved;
/// kInternal where these do not accept that. All save first: a `save` that throws changes nothing.
Status load_objects(const std::vector<Entry>& list, const std::vector<Part>& found) {
  struct Saved {
    std::size_t index;
    std::vector<std::byte> bytes;
  };
  std::vector<Saved> before;
  for (std::size_t index = 0; index < list.size(); ++index) {
    if (list[index].is_object()) before.push_back({index, list[index].object.save()});
  }
  for (std::size_t next = 0; next < before.size(); ++next) {
    const std::size_t index = before[next].index;
    Status status = load(list[index], found[index].bytes);
    if (status.ok()) continue;
    for (std::size_t undo = 0; undo < next; ++undo) {
      const Saved& saved = before[undo];
      if (Status undone = load(list[saved.index], saved.bytes); !undone.ok()) {
        return Status(Code::kInternal, status.message() + "; and then " + undone.message());
      }
    }
    return status;
  }
  return {};
}

}  // namespace

Layout layout(const State& state) {
  Layout result;
  for (const Entry& entry : StateAccess::entries(state).list) {
    result.push_back({entry.name, entry.type, entry.count});
  }
  return result;
}

Image serialize(const State& state) {
  const StateAccess::Entries& entries = StateAccess::entries(state);
  Image image(kAlignment);
  for (const Entry& entry : entries.list) {
    if (is_large(entry)) continue;
    with_bytes(entry, [&image](std::span<const std::byte> bytes) {
      const std::size_t at = image.size();
      image.resize(at + kAlignment);
      write_at(image, at, EntryHeader{bytes.size(), hash_of(bytes)});
      image.insert(image.end(), bytes.begin(), bytes.end());
      image.resize(padded(image.size()));
    });
  }
  write_at(image, 0,
           ImageHeader{kMagic, image.size(), entries.list.size(), entries.commits, entries.training,
                       entries.generations_before, entries.commits_before});
  return image;
}

std::uint64_t image_bytes(const State& state) {
  std::uint64_t bytes = kAlignment;
  for (const Entry& entry : StateAccess::entries(state).list) {
    with_bytes(entry, [&bytes](std::span<const std::byte> its) {
      bytes += kAlignment + padded(its.size());
    });
  }
  return bytes;
}

Status check_image_bytes(const State& state, std::uint64_t bytes) {
  std::uint64_t least = kAlignment;
  std::uint64_t objects = 0;
  for (const Entry& entry : StateAccess::entries(state).list) {
    if (is_large(entry)) continue;
    least += kAlignment + (entry.is_object() ? 0 : padded(entry.memory().size()));
    if (entry.is_object()) ++objects;
  }
  const bool fits = objects == 0 ? bytes == least
                                 : bytes >= least && bytes % kAlignment == 0 &&
                                       (bytes - least) / objects <= kMostObjectBytes;
  if (fits) return {};
  return bad("is announced with " + std::to_string(bytes) + " bytes, where this worker's entries " +
             (objects == 0
                  ? "make " + std::to_string(least)
                  : "make at least " + std::to_string(least) + ", and an object may have at most " +
                        std::to_string(kMostObjectBytes)));
}

std::vector<std::span<std::byte>> large_entries(const State& state) {
  std::vector<std::span<std::byte>> large;
  for (const Entry& entry : StateAccess::entries(state).list) {
    if (is_large(entry)) large.push_back(entry.memory());
  }
  return large;
}

Status restore_all_but_large(State& state, std::span<const std::byte> image) {
  StateAccess::Entries& entries = StateAccess::entries(state);
  const Result<ImageHeader> header = check_header(image, entries.list.size());
  if (!header.ok()) return header.status();
  const Result<std::vector<Part>> found = parts(image, entries.list);
  if (!found.ok()) return found.status();
  if (Status status = load_objects(entries.list, found.value()); !status.ok()) return status;
  for (std::size_t index = 0; index < entries.list.size(); ++index) {
    const Entry& entry = entries.list[index];
    if (entry.is_object() || is_large(entry)) continue;
    std::ranges::copy(found.value()[index].bytes, entry.memory().begin());
  }
  entries.commits = header.value().commits;
  if (header.value().training != 0) entries.training = header.value().training;
  entries.generations_before = header.value().generations_before;
  entries.commits_before = header.value().commits_before;
  return {};
}

Result<std::vector<std::uint64_t>> restore(State& state, std::span<const std::byte> image,
                                           std::span<const std::span<const std::byte>> large) {
  const std::vector<Entry>& list = StateAccess::entries(state).list;
  if (Status status = check_large(large, list); !status.ok()) return status;
  if (Status status = restore_all_but_large(state, image); !status.ok()) return status;
  std::vector<std::uint64_t> hashes;
  for (const Entry& entry : list) {
    if (is_large(entry)) {
      hashes.push_back(copy_and_hash(large.front(), entry.memory()));
      large = large.subspan(1);
    } else {
      with_bytes(entry,
                 [&](std::span<const std::byte> bytes) { hashes.push_back(hash_of(bytes)); });
    }
  }
  return hashes;
}

std::vector<std::uint64_t> hashes(const State& state) {
  std::vector<std::uint64_t> result;
  for (const Entry& entry : StateAccess::entries(state).list) {
    with_bytes(entry,
               [&result](std::span<const std::byte> bytes) { result.push_back(hash_of(bytes)); });
  }
  return result;
}

}  // namespace elastic::training
