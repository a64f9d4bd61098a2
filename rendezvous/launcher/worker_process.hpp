#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "rendezvous/launcher/child_process.hpp"
#include "rendezvous/launcher/exit_status.hpp"
#include "rendezvous/launcher/worker_output.hpp"

namespace elastic::launcher {

/// A worker that was started: its process group, and the pumps from its channels to `output`.
/// Lives on the launcher's io_context.
class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
 public:
  WorkerProcess(boost::asio::io_context& io, ChildProcess child, int guardian_pipe,
                WorkerOutput& output);
  ~WorkerProcess();

  void pump();
  void signal(int number) const;
  /// Once the process has ended: kills what it left in its group, takes the rest of its output and
  /// reaps it. Nothing while it runs.
  std::optional<ExitStatus> collect();
  pid_t pid() const { return pid_; }
  /// Whether this process is in the worker's group: itself, or what it has started there.
  bool has(std::int64_t pid) const;

 private:
  struct Source {
    Source(boost::asio::io_context& io, UniqueFd fd, Channel which)
        : pipe(io, fd.release()), channel(which) {}
    boost::asio::posix::stream_descriptor pipe;  ///< or a pseudo-terminal
    Channel channel;
    std::array<char, 16 * 1024> buffer{};
  };
  void pump(Source& source);
  /// Reads once; false at the end of the stream.
  bool take(Source& source);
  void take_rest(Source& source);

  pid_t pid_;
  int guardian_pipe_;
  WorkerOutput& output_;
  Source out_;
  Source err_;
};

}  // namespace elastic::launcher
