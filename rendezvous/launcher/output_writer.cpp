#include "rendezvous/launcher/output_writer.hpp"

#include <cerrno>
#include <deque>
#include <poll.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include "base/mutex.hpp"
#include "base/thread_name.hpp"

namespace elastic::launcher {

namespace {

/// Beyond this the workers' output stays in their own channels, and they wait as for any reader.
constexpr std::size_t kFull = std::size_t{1} << 20;

}  // namespace

int write_whole(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Another process made our stdout non-blocking.
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

struct OutputWriter::Queue {
  struct Piece {
    int fd = -1;
    std::string destination;
    std::string text;
  };
  using Callbacks = std::vector<std::function<void()>>;

  Queue(boost::asio::io_context& its_io, Lost its_lost) : io(its_io), lost(std::move(its_lost)) {}

  /// Hands `callbacks` to the launcher's thread. Not after the writer's end.
  void call(Callbacks callbacks) ELASTIC_REQUIRES(mutex) {
    if (ended) return;
    for (auto& callback : callbacks) boost::asio::post(io, std::move(callback));
  }

  boost::asio::io_context& io;  // not used once `ended`
  const Lost lost;
  Mutex mutex;
  ConditionVariable changed;
  std::deque<Piece> pieces ELASTIC_GUARDED_BY(mutex);
  /// The size of the pieces, including the one that is being written.
  std::size_t bytes ELASTIC_GUARDED_BY(mutex) = 0;
  Callbacks on_room ELASTIC_GUARDED_BY(mutex);
  Callbacks on_empty ELASTIC_GUARDED_BY(mutex);
  bool ended ELASTIC_GUARDED_BY(mutex) = false;
};

OutputWriter::OutputWriter(boost::asio::io_context& io, Lost lost)
    : queue_(std::make_shared<Queue>(io, std::move(lost))) {
  std::thread([queue = queue_] { work(queue); }).detach();
}

OutputWriter::~OutputWriter() {
  Queue::Callbacks on_room;  // they own what must go before `io`, and after the lock is given back
  Queue::Callbacks on_empty;
  const MutexLock lock(queue_->mutex);
  queue_->ended = true;
  queue_->pieces.clear();
  on_room.swap(queue_->on_room);
  on_empty.swap(queue_->on_empty);
  queue_->changed.notify_all();
}

void OutputWriter::work(const std::shared_ptr<Queue>& queue) {
  name_this_thread("elastic-output");
  MutexLock lock(queue->mutex);
  while (true) {
    queue->changed.wait(lock, [&]() ELASTIC_REQUIRES(queue->mutex) {
      return queue->ended || !queue->pieces.empty();
    });
    if (queue->ended) return;
    const Queue::Piece piece = std::move(queue->pieces.front());
    queue->pieces.pop_front();
    lock.unlock();
    const int error = write_whole(piece.fd, piece.text);
    lock.lock();
    queue->bytes -= piece.text.size();
    if (error != 0) queue->call({[queue, piece, error] { queue->lost(piece.destination, error); }});
    if (queue->bytes <= kFull / 2) queue->call(std::exchange(queue->on_room, {}));
    if (queue->bytes == 0) queue->call(std::exchange(queue->on_empty, {}));
  }
}

void OutputWriter::write(int fd, const std::string& destination, std::string text) {
  if (text.empty()) return;
  const MutexLock lock(queue_->mutex);
  queue_->bytes += text.size();
  queue_->pieces.push_back({fd, destination, std::move(text)});
  queue_->changed.notify_all();
}

bool OutputWriter::is_full() const {
  const MutexLock lock(queue_->mutex);
  return queue_->bytes > kFull;
}

void OutputWriter::when_there_is_room(std::function<void()> callback) {
  const MutexLock lock(queue_->mutex);
  queue_->on_room.push_back(std::move(callback));
  if (queue_->bytes <= kFull / 2) queue_->call(std::exchange(queue_->on_room, {}));
}

void OutputWriter::when_empty(std::function<void()> callback) {
  const MutexLock lock(queue_->mutex);
  queue_->on_empty.push_back(std::move(callback));
  if (queue_->bytes == 0) queue_->call(std::exchange(queue_->on_empty, {}));
}

}  // namespace elastic::launcher
