#include "timeline/trace_writer.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.hpp"
#include "base/thread_name.hpp"

namespace elastic::timeline {

namespace {

/// So old may the events be that a killed process does not write.
constexpr Milliseconds kBetweenWrites{20};
/// Text that is written at once.
constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr int kLowestPriority = 19;

/// On Linux each thread has a priority of its own. Failing to set it is no harm.
void lower_priority_of_this_thread() {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kLowestPriority);
}

Status refusal(const std::string& path, const std::string& why, const std::string& remedy) {
  return Status(Code::kInvalidArgument, "cannot write the timeline to " + path + ": " + why + "; " +
                                            remedy + " (ELASTIC_TIMELINE or start_timeline)");
}

/// Opens no file that could hold up the worker: a FIFO, for example, makes writers wait for its
/// reader, or sends them SIGPIPE. A character device is written without waiting.
Result<UniqueFd> open_without_waiting(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd(::open(path.c_str(), kFlags, 0644));
  struct stat info {};
  const bool opened = fd && ::fstat(fd.get(), &info) == 0;
  if (!opened && errno != ENXIO) {
    return refusal(path, std::strerror(errno),
                   "name a file in a folder that is there and that you may write to");
  }
  if (opened && (S_ISREG(info.st_mode) || S_ISCHR(info.st_mode))) return fd;
  return refusal(path, "it is a FIFO, a socket or a block device",
                 "name a regular file, which is made if it is not there");
}

}  // namespace

Status check_timeline_path(const std::string& path) {
  std::error_code unreadable;
  if (path.empty()) {
    return refusal("''", "the path is empty", "name a file, such as trace.json");
  }
  if (path.back() == '/' || std::filesystem::is_directory(path, unreadable)) {
    return refusal(
        path, "it is a folder",
        "name a file in it, such as " + path + (path.back() == '/' ? "" : "/") + "trace.json");
  }
  return {};
}

std::string path_of_worker(const std::string& path, std::uint64_t worker) {
  const std::size_t folder = path.rfind('/') + 1;  // 0 without one
  const std::size_t dot = path.rfind('.');
  const bool has_ending = dot != std::string::npos && dot > folder;
  const std::string id = fmt::format("{:016x}", worker);
  if (!has_ending) return path + "." + id + ".json";
  return path.substr(0, dot) + "." + id + path.substr(dot);
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const TraceFile& file, EventRing& ring,
                                                         const Texts& texts) {
  auto fd = open_without_waiting(file.path);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<TraceWriter>(new TraceWriter(file, std::move(fd).value(), ring, texts));
}

TraceWriter::TraceWriter(TraceFile file, UniqueFd fd, EventRing& ring, const Texts& texts)
    : file_(std::move(file)), fd_(std::move(fd)), ring_(ring), format_(file_.facts, texts) {
  Event old;
  while (ring_.pop(old)) {  // recorded after the end of an earlier timeline
  }
  (void)ring_.take_dropped();
  write(format_.beginning());
  thread_ = std::thread([this] { loop(); });
}

TraceWriter::~TraceWriter() {
  {
    const MutexLock lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
  std::string text;
  write_events(text);
  write(format_.end());
}

void TraceWriter::loop() {
  name_this_thread("elastic-trace");
  lower_priority_of_this_thread();
  std::string text;
  MutexLock lock(mutex_);
  while (!end_) {
    ended_.wait_for(lock, kBetweenWrites);
    lock.unlock();
    write_events(text);
    lock.lock();
  }
}

void TraceWriter::write_events(std::string& text) {
  format_.anchor();
  text.clear();
  Event event;
  // No more than the ring holds: a fast producer does not keep this function from its end.
  for (std::size_t count = 0; count < EventRing::kSlots && ring_.pop(event); ++count) {
    format_.append(event, text);
    if (text.size() < kChunk) continue;
    write(text);
    text.clear();
  }
  if (const std::uint64_t dropped = ring_.take_dropped(); dropped > 0) {
    format_.append_dropped(dropped, text);
  }
  write(text);
}

/// A full disk ends the timeline, and not the job.
void TraceWriter::write(const std::string& text) {
  std::size_t done = 0;
  while (fd_ && done < text.size()) {
    const ssize_t wrote = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      log::warn("the timeline {} ends here: {}", file_.path, std::strerror(errno));
      fd_.reset();
    }
  }
}

}  // namespace elastic::timeline
