#include "training/checkpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "base/hash.hpp"
#include "base/layout.hpp"
#include "base/public_code.hpp"
#include "base/replacement_file.hpp"
#include "base/unique_fd.hpp"
#include "training/boundary.hpp"
#include "training/bytes.hpp"
#include "training/state_entries.hpp"
#include "training/state_image.hpp"

namespace elastic::training {
namespace {

constexpr std::uint64_t kCheckpointMagic =
    0x544e504b48434c45U;  // "ELCHKPNT" as little-endian bytes
/// Grows with any change of the file, of an image, or of what counts as a large entry.
constexpr std::uint64_t kCheckpointVersion = 2;
/// Read as well: its preamble ends before `training`.
constexpr std::uint64_t kVersionWithoutOrder = 1;
constexpr std::uint64_t kHashBytes = sizeof(std::uint64_t);
/// Read at a time, where it is only hashed.
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

struct Preamble {
  std::uint64_t magic = kCheckpointMagic;
  std::uint64_t version = kCheckpointVersion;
  std::uint64_t file_bytes = 0;
  std::uint64_t layout_bytes = 0;
  std::uint64_t image_bytes = 0;
  // Which of two checkpoints is the older one: see `is_older`.
  std::uint64_t training = 0;  // 0: not known
  std::uint64_t generation = 0;
  std::uint64_t commits = 0;

  std::size_t bytes() const { return version == kVersionWithoutOrder ? 40 : sizeof(Preamble); }
};
static_assert(sizeof(Preamble) == 64);

/// In one branch of a training, the state of an earlier generation is older, and in a generation
/// the one with fewer commits. A worker that was given up can have more commits than the job had
/// when it went on without it.
bool is_older(const Preamble& one, const Preamble& other) {
  return std::pair(one.generation, one.commits) < std::pair(other.generation, other.commits);
}

void throw_if(const Status& status) {
  if (!status.ok()) throw Error(public_code(status.code()), status.message());
}

std::vector<std::byte> encode(const Layout& layout) {
  std::vector<std::byte> bytes;
  for (const LayoutEntry& entry : layout) {
    put_part(bytes, std::as_bytes(std::span(entry.name)));
    put_part(bytes, std::as_bytes(std::span(entry.type)));
    put(bytes, entry.count);
  }
  return bytes;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<Layout> decode(std::span<const std::byte> bytes) {
  Layout layout;
  ByteReader reader(bytes);
  while (reader.left() > 0) {
    std::span<const std::byte> name;
    std::span<const std::byte> type;
    std::uint64_t count = 0;
    if (!reader.take_part(name) || !reader.take_part(type) || !reader.take(count)) {
      return std::nullopt;
    }
    layout.push_back({text_of(name), text_of(type), count});
  }
  return layout;
}

std::uint64_t total_bytes(const std::vector<std::span<std::byte>>& large) {
  std::uint64_t bytes = 0;
  for (const auto& entry : large) bytes += entry.size();
  return bytes;
}

/// A checkpoint that is being read. All functions throw.
class Reader {
 public:
  Reader(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  /// Checks the whole file; afterwards it can be relied on.
  void verify();
  /// That the file is of a state with this layout.
  void compare(const Layout& own) const;
  std::span<const std::byte> image() const { return std::span(head_).last(preamble_.image_bytes); }
  /// That it has as many bytes for the large entries as they have.
  void compare_large(const std::vector<std::span<std::byte>>& large) const;
  std::uint64_t generation() const { return preamble_.generation; }
  /// Fills the large entries.
  void read_large(const std::vector<std::span<std::byte>>& large) const;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument, "checkpoint " + path_ + ": " + why);
  }

 private:
  std::uint64_t size() const;
  void check_preamble(std::uint64_t size);
  Status read(std::uint64_t at, std::span<std::byte> bytes) const;
  [[noreturn]] void refuse_as_damaged(const std::string& what) const {
    refuse(what + "; use another checkpoint, or remove this one to start a new training");
  }

  UniqueFd file_;
  std::string path_;
  Preamble preamble_;
  std::vector<std::byte> head_;  // everything before the large entries
  std::uint64_t hash_ = 0;
};

void Reader::verify() {
  const std::uint64_t size = this->size();
  check_preamble(size);
  head_.resize(preamble_.bytes() + preamble_.layout_bytes + preamble_.image_bytes);
  throw_if(read(0, head_));
  PiecewiseHash hash;
  hash.add(head_);
  std::vector<std::byte> piece;
  const std::uint64_t end = size - kHashBytes;
  for (std::uint64_t at = head_.size(); at < end; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kReadBytes, end - at));
    throw_if(read(at, piece));
    hash.add(piece);
  }
  throw_if(read(end, std::as_writable_bytes(std::span(&hash_, 1))));
  if (hash.value() != hash_) refuse_as_damaged("is damaged: its checksum is wrong");
}

std::uint64_t Reader::size() const {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) refuse("is no regular file");
  return static_cast<std::uint64_t>(info.st_size);
}

void Reader::check_preamble(std::uint64_t size) {
  const auto bytes = std::as_writable_bytes(std::span(&preamble_, 1));
  throw_if(read(0, bytes.first(std::min<std::uint64_t>(size, bytes.size()))));
  if (size < sizeof(kCheckpointMagic) || preamble_.magic != kCheckpointMagic) {
    refuse("is no checkpoint (" + std::to_string(size) +
           " bytes of something else); check its name");
  }
  if (size < sizeof(kCheckpointMagic) + sizeof(kCheckpointVersion)) {
    refuse_as_damaged("is cut short in its first bytes");
  }
  if (preamble_.version != kCheckpointVersion && preamble_.version != kVersionWithoutOrder) {
    refuse("is of format " + std::to_string(preamble_.version) + ", and this library reads " +
           std::to_string(kVersionWithoutOrder) + " and " + std::to_string(kCheckpointVersion) +
           "; use the library that wrote it");
  }
  if (size < preamble_.bytes()) refuse_as_damaged("is cut short in its first bytes");
  if (preamble_.version == kVersionWithoutOrder) {
    preamble_.training = preamble_.generation = preamble_.commits = 0;  // other bytes were read
  }
  if (preamble_.file_bytes != size) {
    refuse_as_damaged("has " + std::to_string(size) + " bytes, and was written with " +
                      std::to_string(preamble_.file_bytes));
  }
  const std::uint64_t rest = size - preamble_.bytes();
  if (rest < kHashBytes || preamble_.layout_bytes > rest - kHashBytes ||
      preamble_.image_bytes > rest - kHashBytes - preamble_.layout_bytes) {
    refuse_as_damaged("is damaged: its parts are larger than it is");
  }
}

void Reader::compare(const Layout& own) const {
  const auto saved = decode(std::span(head_).subspan(preamble_.bytes(), preamble_.layout_bytes));
  if (!saved) refuse_as_damaged("is damaged: its list of entries cannot be read");
  const std::string difference = layout_difference(*saved, "the file", own, "this worker");
  if (!difference.empty()) {
    refuse("is of another state: " + difference + "; load it into the model that it was made of");
  }
}

void Reader::compare_large(const std::vector<std::span<std::byte>>& large) const {
  const std::uint64_t saved = preamble_.file_bytes - kHashBytes - head_.size();
  if (saved == total_bytes(large)) return;
  refuse_as_damaged("is damaged: it has " + std::to_string(saved) +
                    " bytes of large entries, and the state has " +
                    std::to_string(total_bytes(large)));
}

void Reader::read_large(const std::vector<std::span<std::byte>>& large) const {
  PiecewiseHash hash;
  hash.add(head_);
  bool whole = true;
  std::uint64_t at = head_.size();
  for (const std::span<std::byte> entry : large) {
    for (std::size_t done = 0; done < entry.size(); done += kReadBytes) {
      const auto piece = entry.subspan(done, std::min(kReadBytes, entry.size() - done));
      whole = whole && read(at, piece).ok();
      hash.add(piece);
      at += piece.size();
    }
  }
  if (!whole || hash.value() != hash_) {
    throw Error(ErrorCode::kInternal, "checkpoint " + path_ +
                                          " changed while it was read: the state is no longer "
                                          "consistent; end this process and load again");
  }
}

Status Reader::read(std::uint64_t at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Status(Code::kUnavailable,
                    "cannot read the checkpoint " + path_ + ": " +
                        (got < 0 ? std::strerror(errno) : "it was cut while it was read"));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    at += static_cast<std::uint64_t>(got);
  }
  return {};
}

/// The kernel would take what is in front of it for the name.
void check_name(const std::string& path) {
  if (path.find('\0') == std::string::npos) return;
  throw Error(ErrorCode::kInvalidArgument,
              "a checkpoint's name has a zero byte in it: '" + std::string(path.c_str()) + "...'");
}

/// A job that finds no checkpoint starts a new training, which is not meant where the path is
/// wrong.
void check_that_it_may_be_missing(const std::filesystem::path& path) {
  std::error_code none;
  const std::string file = "the checkpoint " + path.string();
  if (path.empty()) throw Error(ErrorCode::kInvalidArgument, "a checkpoint's name is empty");
  if (std::filesystem::is_symlink(path, none)) {
    throw Error(ErrorCode::kUnavailable,
                file + " is a symbolic link to nothing; mount what it leads to, or remove it");
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::is_directory(folder, none)) return;
  throw Error(ErrorCode::kUnavailable,
              "the folder of " + file +
                  " does not exist; check the path and whether its disk "
                  "is mounted, or make the folder to start a new training");
}

/// The preamble of a file; all zeros where it has none, or is not there or no checkpoint:
/// such a file is replaced.
Preamble preamble_of(const std::string& path) {
  Preamble preamble{};
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t got = file ? ::pread(file.get(), &preamble, sizeof(preamble), 0) : 0;
  const bool says = got == static_cast<ssize_t>(sizeof(preamble)) &&
                    preamble.magic == kCheckpointMagic && preamble.version == kCheckpointVersion;
  return says ? preamble : Preamble{};
}

/// The file in a checkpoint's place, and the state that is to replace it.
struct Replacement {
  Preamble present;
  Preamble mine;
  Preamble origin;  ///< of the checkpoint that the job began with

  bool is_of_same_training() const { return same_training(mine.training, present.training); }
  bool is_of_my_branch() const { return mine.training == present.training; }
  bool is_newer() const { return is_older(mine, present); }

  /// Whether the file stays. A job replaces the one that it began with, and older ones. The
  /// generation of a job that went back to an older checkpoint grows with its view changes, and
  /// says nothing about the states that the job has left behind.
  bool is_refused() const {
    if (!is_of_same_training()) return false;
    if (is_of_my_branch()) return is_newer();
    // Each job that loads a checkpoint adds its generations, so that a branch of many short jobs
    // may have more of them than a longer one; commits only grow with the training.
    return is_older(origin, present) || origin.commits < present.commits;
  }
};

/// Throws if the file stays. `boundary`: of the run that this worker is in, or null.
void throw_if_refused(const Replacement& its, const std::string& path, Boundary* boundary) {
  if (!its.is_refused()) return;
  // The members of a later view wrote it, and the news of that view is on its way to this worker.
  const bool is_of_later_view =
      its.is_of_my_branch() && its.present.generation > its.mine.generation;
  if (is_of_later_view && boundary != nullptr) boundary->await_end();
  const auto text = [](const Preamble& of) {
    return std::to_string(of.commits) + " commits in generation " + std::to_string(of.generation);
  };
  const std::string what =
      its.is_newer()
          ? " is newer, of " + text(its.present) + ", than this worker's state, of " +
                text(its.mine)
          : " is of " + text(its.present) +
                ", and this job went on from an older checkpoint of the same training (its state "
                "is of " +
                text(its.mine) + ")";
  throw Error(ErrorCode::kUnavailable,
              "checkpoint " + path + what +
                  "; it stays; to save this one all the same, move that file away, or save under "
                  "another name");
}

}  // namespace

void save_checkpoint(const State& state, const std::string& path) {
  check_name(path);
  const std::vector<std::byte> layout = encode(training::layout(state));
  const Image image = serialize(state);
  const std::vector<std::span<std::byte>> large = large_entries(state);
  Preamble preamble;
  preamble.layout_bytes = layout.size();
  preamble.image_bytes = image.size();
  preamble.file_bytes =
      sizeof(Preamble) + layout.size() + image.size() + total_bytes(large) + kHashBytes;
  const StateAccess::Entries& entries = StateAccess::entries(state);
  preamble.training = entries.training;
  preamble.generation = entries.generation();
  preamble.commits = entries.commits;

  Result<ReplacementFile> file = ReplacementFile::create(path);
  throw_if(file.status());
  Preamble origin;
  origin.generation = entries.generations_before;
  origin.commits = entries.commits_before;
  const auto replacement = [&] { return Replacement{preamble_of(path), preamble, origin}; };
  // `commit` will find this file in its place, unless another worker writes meanwhile.
  throw_if_refused(replacement(), path, entries.boundary);
  PiecewiseHash hash;
  const auto write = [&](std::span<const std::byte> bytes) {
    hash.add(bytes);
    throw_if(file.value().write(bytes));
  };
  write(std::as_bytes(std::span(&preamble, 1)));
  write(layout);
  write(image);
  for (const auto& entry : large) write(entry);
  const std::uint64_t value = hash.value();
  write(std::as_bytes(std::span(&value, 1)));
  // A worker that was given up may have put an older state there meanwhile.
  const Status replaced = file.value().commit([&] {
    const Replacement its = replacement();
    return its.is_of_same_training() && !its.is_refused();
  });
  if (replaced.ok()) return;
  throw_if_refused(replacement(), path, entries.boundary);
  throw_if(replaced);
}

bool load_checkpoint(State& state, const std::string& path) {
  check_name(path);
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) {
    check_that_it_may_be_missing(path);
    return false;
  }
  if (!file) {
    throw_if(Status(Code::kUnavailable,
                    "cannot open the checkpoint " + path + ": " + std::strerror(errno)));
  }
  Reader reader(std::move(file), path);
  reader.verify();
  reader.compare(layout(state));
  reader.compare_large(large_entries(state));
  if (Status restored = restore_all_but_large(state, reader.image()); !restored.ok()) {
    if (restored.code() == Code::kInternal) throw_if(restored);
    reader.refuse(restored.message());
  }
  reader.read_large(large_entries(state));
  StateAccess::Entries& entries = StateAccess::entries(state);
  if (reader.generation() > 0) entries.generations_before = reader.generation();
  entries.generation_in_job = 0;
  entries.loaded = true;
  return true;
}

}  // namespace elastic::training
