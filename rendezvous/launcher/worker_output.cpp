#include "rendezvous/launcher/worker_output.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace elastic::launcher {

WorkerOutput::WorkerOutput(std::string prefix, OutputWriter& output, OutputWriter& errors)
    : prefix_(std::move(prefix)),
      output_sink_{output, "stdout", STDOUT_FILENO},
      errors_sink_{errors, "stderr", STDERR_FILENO},
      output_([this](std::string_view text) { line(output_sink_, text); }),
      errors_([this](std::string_view text) { line(errors_sink_, text); }) {}

Status WorkerOutput::open_files(const std::string& name, const std::string& folder,
                                WorkerOutput& output) {
  const auto open = [&](const char* ending, Sink& sink) {
    sink.name = folder + "/worker-" + name + ending;
    sink.file.reset(::open(sink.name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    sink.fd = sink.file.get();
    return sink.file ? Status()
                     : Status(Code::kUnavailable, sink.name + ": " + std::strerror(errno));
  };
  output.prefix_.clear();
  Status status = open(".out", output.output_sink_);
  return status.ok() ? open(".err", output.errors_sink_) : status;
}

void WorkerOutput::feed(Channel channel, std::string_view bytes) {
  (channel == Channel::kOutput ? output_ : errors_).feed(bytes);
}

void WorkerOutput::finish() {
  output_.finish();
  errors_.finish();
}

void WorkerOutput::line(const Sink& sink, std::string_view text) {
  std::string whole;
  whole.reserve(prefix_.size() + text.size() + 1);
  whole.append(prefix_).append(text).append("\n");
  sink.writer.write(sink.fd, sink.name, std::move(whole));
  last_lines_.emplace_back(text);
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
}

}  // namespace elastic::launcher
