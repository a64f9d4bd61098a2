#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

namespace elastic::launcher {

/// Writes the launcher's output on a thread of its own, in the order of the calls. The reader of
/// the output may stop reading: it may be a pager, or a terminal that was halted. The launcher must
/// still handle signals, workers that end, and the server.
///
/// Functions are called on the launcher's thread, and so are the callbacks, by `io`.
class OutputWriter {
 public:
  /// Called when a text could not be written, with its destination and the error number. The text
  /// is lost.
  using Lost = std::function<void(const std::string& destination, int error)>;

  /// Starts the thread.
  OutputWriter(boost::asio::io_context& io, Lost lost);
  /// Discards the texts that are not written yet; wait for `when_empty` to keep them.
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  /// Queues `text`, and never waits. The text is written with a single write(2) if the kernel takes
  /// it whole, so that lines of several writers do not mix. `fd` must stay open; `destination` is
  /// its name in messages.
  void write(int fd, const std::string& destination, std::string text);

  /// Whether the queue is so long that the caller should not write before `when_there_is_room` has
  /// called back.
  bool is_full() const;
  void when_there_is_room(std::function<void()> callback);
  /// Calls back when everything is written.
  void when_empty(std::function<void()> callback);

 private:
  struct Queue;
  static void work(const std::shared_ptr<Queue>& queue);

  std::shared_ptr<Queue> queue_;  ///< also the thread's, which may outlive this object in a write
};

/// Writes all of `text`. Returns 0, or the error number that ended the writing.
int write_whole(int fd, std::string_view text) noexcept;

}  // namespace elastic::launcher
