#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/launcher/line_splitter.hpp"
#include "rendezvous/launcher/output_writer.hpp"

namespace elastic::launcher {

enum class Channel { kOutput, kErrors };

/// Where the lines of a child process go: to the launcher's own stdout and stderr, each line whole
/// and with a prefix, or to two files. Keeps the last lines for the report of a failure.
///
/// Owned by the launcher's thread.
class WorkerOutput {
 public:
  static constexpr std::size_t kLinesKept = 20;

  /// To the launcher's own stdout and stderr, by these writers, which outlive this.
  WorkerOutput(std::string prefix, OutputWriter& output, OutputWriter& errors);
  /// To worker-NAME.out and .err in `folder`, at their ends: a restarted worker's output follows.
  static Status open_files(const std::string& name, const std::string& folder,
                           WorkerOutput& output);

  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;

  void feed(Channel channel, std::string_view bytes);
  /// The writer of a channel's lines.
  OutputWriter& writer(Channel channel) {
    return (channel == Channel::kOutput ? output_sink_ : errors_sink_).writer;
  }
  void finish();
  /// Before the worker is started again: the report is about its last process.
  void forget_lines() { last_lines_.clear(); }
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  struct Sink {
    OutputWriter& writer;
    std::string name;
    int fd;
    UniqueFd file{};  ///< owns `fd`, unless that is the launcher's
  };
  void line(const Sink& sink, std::string_view text);

  std::string prefix_;
  Sink output_sink_;
  Sink errors_sink_;
  std::deque<std::string> last_lines_;
  LineSplitter output_;
  LineSplitter errors_;
};

}  // namespace elastic::launcher
