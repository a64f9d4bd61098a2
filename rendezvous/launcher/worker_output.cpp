#include "rendezvous/launcher/worker_output.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace elastic::launcher {

void write_whole(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody else made our stdout non-blocking.
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

WorkerOutput::WorkerOutput(int slot, bool prefix)
    : prefix_(prefix ? "[" + std::to_string(slot) + "] " : ""),
      output_fd_(STDOUT_FILENO),
      errors_fd_(STDERR_FILENO),
      output_([this](std::string_view text) { line(output_fd_, text); }),
      errors_([this](std::string_view text) { line(errors_fd_, text); }) {}

Status WorkerOutput::open_files(int slot, const std::string& folder, WorkerOutput& output) {
  const auto open = [&](const char* ending, UniqueFd& file, int& fd) {
    const std::string path = folder + "/worker-" + std::to_string(slot) + ending;
    file.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    fd = file.get();
    return file ? Status() : Status(Code::kUnavailable, path + ": " + std::strerror(errno));
  };
  output.prefix_.clear();
  Status status = open(".out", output.output_file_, output.output_fd_);
  return status.ok() ? open(".err", output.errors_file_, output.errors_fd_) : status;
}

void WorkerOutput::feed(Channel channel, std::string_view bytes) {
  (channel == Channel::kOutput ? output_ : errors_).feed(bytes);
}

void WorkerOutput::finish() {
  output_.finish();
  errors_.finish();
}

void WorkerOutput::line(int fd, std::string_view text) {
  std::string whole;
  whole.reserve(prefix_.size() + text.size() + 1);
  whole.append(prefix_).append(text).append("\n");
  write_whole(fd, whole);
  last_lines_.emplace_back(text);
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
}

}  // namespace elastic::launcher
