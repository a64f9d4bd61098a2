#include "rendezvous/server/journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/server/reserved_file.hpp"

namespace elastic::rendezvous {

namespace {

/// Taken ahead in the journal and in the spare, and as much as some views: of a small job, a
/// hundred.
constexpr std::size_t kReserve = 256 * 1024;
constexpr std::size_t kReservedViews = 4;
/// A spare with less would not be worth it.
constexpr std::size_t kLeastReserve = 16 * 1024;
/// A journal that has grown beyond is rewritten with what it says in the end.
constexpr std::size_t kMostBytes = 1 << 20;
/// More was not written by us: nothing in a journal is longer than a line over kMostBytes.
constexpr std::size_t kMostReadBytes = 64 << 20;
constexpr int kMode = 0600;

struct Place {
  std::string path;  ///< absolute, without links
  std::string name;  ///< in its folder
  std::string spare;
  UniqueFd folder;
};

/// Where something fails before there is a journal.
Status cannot_open(const std::string& path, const std::string& why) {
  return Status(Code::kUnavailable, "cannot open the journal " + path + ": " + why);
}

Result<Place> find_place(const std::string& wanted) {
  // Made first: a link may lead to a file that is not there yet.
  const UniqueFd file(::open(wanted.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode));
  if (!file) {
    const int why = errno;
    return cannot_open(
        wanted, std::string(std::strerror(why)) + (why == ENOENT ? "; make its folder first" : ""));
  }
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(wanted, error);
  if (error) return cannot_open(wanted, error.message());
  Place place{path.string(), path.filename().string(), path.filename().string() + ".spare",
              UniqueFd(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
  if (!place.folder) return cannot_open(wanted, std::strerror(errno));
  return place;
}

/// The file at the place, made if there is none, and locked until it is closed.
Result<UniqueFd> open_locked(const Place& place) {
  while (true) {
    UniqueFd file(::openat(place.folder.get(), place.name.c_str(),
                           O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode));
    if (!file) return cannot_open(place.path, std::strerror(errno));
    struct stat opened {};
    struct stat there {};
    if (::fstat(file.get(), &opened) != 0) return cannot_open(place.path, std::strerror(errno));
    if (!S_ISREG(opened.st_mode)) return cannot_open(place.path, "it is no regular file");
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return cannot_open(place.path, errno == EWOULDBLOCK
                                         ? "another server has it open; end that one, or give each "
                                           "its own path"
                                         : std::strerror(errno));
    }
    // The earlier holder may have put another file in its place before we had the lock.
    const bool found = ::fstatat(place.folder.get(), place.name.c_str(), &there, 0) == 0;
    if (found && there.st_ino == opened.st_ino && there.st_dev == opened.st_dev) return file;
  }
}

Result<std::string> read_whole(const UniqueFd& file, const std::string& path) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return cannot_open(path, std::strerror(errno));
  if (static_cast<std::size_t>(info.st_size) > kMostReadBytes) {
    return Status(Code::kInvalidArgument, "journal " + path + ": " + std::to_string(info.st_size) +
                                              " bytes are no journal; give another path");
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got =
        ::pread(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_open(path, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return text;
}

/// A journal in a file, and a spare file beside it that takes its place when the journal has grown
/// large, or when it is full and so is the disk.
class FileJournal final : public JournalSink {
 public:
  FileJournal(Place place, std::string job, ReservedFile file, JournalContents contents)
      : place_(std::move(place)),
        job_(std::move(job)),
        file_(std::move(file)),
        contents_(std::move(contents)) {}
  ~FileJournal() override { ::unlinkat(place_.folder.get(), place_.spare.c_str(), 0); }
  FileJournal(const FileJournal&) = delete;
  FileJournal& operator=(const FileJournal&) = delete;

  /// Rewrites the journal; where the disk is full, at least cuts off a torn tail.
  Status start() {
    Status fresh = replace(contents_);
    if (fresh.code() == Code::kUnavailable && file_.end() > 0) {
      fresh = contents_.torn ? file_.cut() : Status();
    }
    contents_.torn = false;
    if (fresh.ok()) (void)room();
    return fresh;
  }

  Status append(const View& view) override {
    return keep(contents_.with(view), journal_line(view));
  }
  Status append_floor(std::uint64_t generation) override {
    return keep(contents_.with_floor(generation), journal_line(JournalFloor{generation}));
  }
  Status append_requests(const PendingRequests& requests) override {
    return keep(contents_.with_requests(requests), journal_line(requests));
  }
  Status append_end(const LastWord& end) override {
    return keep(contents_.with_end(end), journal_line(end));
  }

  Status room() override {
    // The spare first: it has what a file that was replaced has just given back.
    Status spare = spare_ ? Status() : make_spare();
    if (spare.ok()) spare = spare_->reserve(reserve_);
    Status reserved = file_.reserve(reserve_);
    return spare.ok() ? reserved : spare;
  }

 private:
  Status keep(JournalContents next, const std::string& line) {
    if (line.size() > kMaxMessageBytes) {
      return Status(Code::kInternal, "a record of " + std::to_string(line.size()) +
                                         " bytes is too large for the journal " + place_.path);
    }
    reserve_ = std::max(reserve_, kReserve + kReservedViews * line.size());
    Status kept = file_.add(line);
    const bool full = kept.code() == Code::kUnavailable;
    if (full || (kept.ok() && file_.end() > kMostBytes)) {
      const Status replaced = replace(next);
      if (full || replaced.code() == Code::kInternal) kept = replaced;
    }
    if (!kept.ok()) return kept;
    contents_ = std::move(next);
    if (!spare_ || file_.reserved() < reserve_ / 2) (void)room();
    return {};
  }

  /// Puts a new file with these contents in the journal's place. A crash before the folder is
  /// synced may leave either; both say what was durable before.
  Status replace(const JournalContents& contents) {
    if (!spare_) {
      if (Status made = make_spare(); !made.ok()) return made;
    }
    const std::string text = journal_text(job_, contents);
    if (Status reserved = spare_->reserve(text.size()); !reserved.ok()) return reserved;
    ReservedFile fresh = *std::exchange(spare_, std::nullopt);
    if (Status written = fresh.add(text); !written.ok()) return written;
    const int folder = place_.folder.get();
    if (::renameat(folder, place_.spare.c_str(), folder, place_.name.c_str()) != 0) {
      return file_failure(place_.path, "replace");
    }
    file_ = std::move(fresh);  // gives back the space of the old one
    if (::fsync(folder) == 0) return {};
    // Whatever the reason, it is not known which file is there after a crash.
    return Status(Code::kInternal, "cannot sync the folder of the journal " + place_.path + ": " +
                                       std::strerror(errno));
  }

  /// With as much space as there is, up to what is wanted. Locked from the beginning, so that there
  /// is no moment in which the journal is not.
  Status make_spare() {
    UniqueFd file(::openat(place_.folder.get(), place_.spare.c_str(),
                           O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return Status(Code::kUnavailable, "cannot make " + place_.path +
                                            ".spare, which the journal needs for when the disk is "
                                            "full: " +
                                            std::strerror(errno));
    }
    ReservedFile spare(std::move(file), place_.path, 0, 0);
    Status reserved = spare.reserve(reserve_);
    for (std::size_t less = reserve_ / 2; !reserved.ok() && less >= kLeastReserve; less /= 2) {
      reserved = spare.reserve(less);
    }
    if (!reserved.ok()) return reserved;
    spare_.emplace(std::move(spare));
    return {};
  }

  const Place place_;
  const std::string job_;
  ReservedFile file_;
  std::optional<ReservedFile> spare_;
  JournalContents contents_;
  std::size_t reserve_ = kReserve;  ///< to be kept free in either file
};

}  // namespace

Result<OpenedJournal> open_journal(const std::string& path, const std::string& job) {
  Result<Place> place = find_place(path);
  if (!place.ok()) return place.status();
  Result<UniqueFd> file = open_locked(place.value());
  if (!file.ok()) return file.status();
  const Result<std::string> text = read_whole(file.value(), path);
  if (!text.ok()) return text.status();
  const Result<ParsedJournal> parsed = parse_journal(text.value(), job);
  if (!parsed.ok()) {
    return Status(Code::kInvalidArgument,
                  "journal " + path + ": " + parsed.status().message() +
                      "; give another path, or move the file away to start without what it says");
  }
  const JournalContents& contents = parsed.value().contents;
  if (contents.torn) {
    log::warn("journal {}: its last record was cut short and does not count", path);
  }
  auto journal = std::make_unique<FileJournal>(
      std::move(place).value(), job,
      ReservedFile(std::move(file).value(), path, parsed.value().whole_bytes, text.value().size()),
      contents);
  if (Status started = journal->start(); !started.ok()) return started;
  return OpenedJournal{std::move(journal), contents};
}

}  // namespace elastic::rendezvous
