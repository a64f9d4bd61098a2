#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

namespace elastic::launcher {

/// Writes the launcher's output on a thread of its own, in the order of the calls: a reader that
/// stops reading, such as a pager or a terminal that was halted, must not keep the launcher from
/// signals, from workers that end, and from the server.
///
/// Functions are called on the launcher's thread, and so are the callbacks, by `io`.
class OutputWriter {
 public:
  /// Told of what could not be written: where to, and the error number. The text is lost.
  using Lost = std::function<void(const std::string& destination, int error)>;

  /// Starts the thread.
  OutputWriter(boost::asio::io_context& io, Lost lost);
  /// Does not wait for what is not written yet: see `when_empty`.
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  /// Queues `text`, which goes out with one write(2) where the kernel takes it at once, so that
  /// lines of several writers do not mix. `fd` must stay open; `destination` is its name. Never
  /// waits.
  void write(int fd, const std::string& destination, std::string text);

  /// So much waits that no more should be added until `when_there_is_room` has called back.
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
