#include "data_stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <poll.h>
#include <utility>

#include "threads.hpp"

namespace elastic::simulation {

namespace {

/// The most bytes in flight that are not read yet.
constexpr std::size_t kRoom = 32 * 1024;

/// One end, as the kernel of its host has it: it lives on while something is on the way.
class End : public Descriptor {
 public:
  End(Connection& connection, Node self) : connection_(connection), self_(self) {}
  void face(std::shared_ptr<End> other) { other_ = std::move(other); }

  short ready() const override {
    const bool gone = lost();
    const bool readable = received_.size() - begin_ > seen_ || gone;
    const bool writable = room() > 0 || gone;
    return static_cast<short>((readable ? POLLIN : 0) | (writable ? POLLOUT : 0) |
                              (gone ? POLLRDHUP : 0));
  }
  int shut_down() override {
    connection_.close(self_);
    changed();
    return 0;
  }

  std::size_t room() const { return unread_ < kRoom ? kRoom - unread_ : 0; }
  bool lost() const { return !connection_.up(self_); }
  bool has(std::size_t bytes) const { return received_.size() - begin_ >= bytes; }
  /// The reader needs more bytes than these: only further ones end a wait, as with a read buffer.
  void see() { seen_ = received_.size() - begin_; }

  void send(std::vector<std::byte> bytes) {
    unread_ += bytes.size();
    connection_.send(self_, [to = other_, what = std::move(bytes)] { to.lock()->receive(what); });
  }
  std::span<const std::byte> view() const { return std::span(received_).subspan(begin_); }
  void take(std::size_t bytes) {
    begin_ += bytes;
    seen_ = 0;
    if (begin_ == received_.size()) {
      received_.clear();
      begin_ = 0;
    }
    const auto other = other_.lock();
    const bool was_full = other->room() == 0;
    other->unread_ -= bytes;
    if (was_full && other->room() > 0) other->changed();
  }
  void close() { connection_.close(self_); }

 private:
  void receive(std::span<const std::byte> bytes) {
    if (begin_ > 0) {
      received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(begin_));
      begin_ = 0;
    }
    received_.insert(received_.end(), bytes.begin(), bytes.end());
    changed();
  }

  Connection& connection_;
  const Node self_;
  std::weak_ptr<End> other_;
  std::vector<std::byte> received_;
  std::size_t begin_ = 0;   // of what was not read
  std::size_t seen_ = 0;    // of it
  std::size_t unread_ = 0;  // by the other end, of what was sent
};

class DataStream final : public transport::Stream {
 public:
  DataStream(std::shared_ptr<End> end, std::shared_ptr<End> other, Chance& chance)
      : end_(std::move(end)),
        other_(std::move(other)),
        number_(Threads::active()->descriptors().open(end_)),
        chance_(chance) {}
  ~DataStream() override {
    end_->close();
    if (Threads* const threads = Threads::active()) threads->descriptors().close(number_);
  }

  Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) override {
    if (end_->lost()) return gone();
    std::size_t room = end_->room();
    if (room > 1 && chance_.below(16) == 0) room = 1 + chance_.below(room - 1);
    std::vector<std::byte> bytes;
    for (const auto part : parts) {
      const std::size_t some = std::min(room - bytes.size(), part.size());
      bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(some));
    }
    const std::size_t taken = bytes.size();
    if (taken > 0) end_->send(std::move(bytes));
    return taken;
  }

  Result<std::size_t> read(std::span<std::byte> into) override {
    const auto there = end_->view();
    if (there.empty() && end_->lost()) return gone();
    const std::size_t some = std::min(there.size(), into.size());
    if (some > 0) std::memcpy(into.data(), there.data(), some);
    if (some > 0) end_->take(some);
    return some;
  }

  Result<std::span<const std::byte>> peek(std::size_t at_least) override {
    if (end_->has(at_least)) return end_->view();
    if (end_->lost()) return gone();
    end_->see();
    return std::span<const std::byte>();
  }
  void consume(std::size_t bytes) override {
    if (bytes > 0) end_->take(bytes);
  }

  int fd() const override { return number_; }
  bool prepare_wait(bool want_read, bool want_write, short& events) override {
    reads_nothing_ = !want_read;
    events = static_cast<short>((want_read ? POLLIN : POLLRDHUP) | (want_write ? POLLOUT : 0));
    return true;
  }
  void finish_wait() override {
    if (std::exchange(reads_nothing_, false) && end_->lost()) peer_gone_ = true;
  }
  bool peer_gone() const override { return peer_gone_; }
  const char* transport() const override { return "simulated"; }

 private:
  static Status gone() { return Status(Code::kPeerLost, "the peer is gone"); }

  const std::shared_ptr<End> end_;
  const std::shared_ptr<End> other_;  // lives as long as what is on the way may
  const int number_;
  Chance& chance_;
  bool reads_nothing_ = false;
  bool peer_gone_ = false;
};

}  // namespace

DataStreams connect_data(Network& network, Chance& chance, Node first, Node second) {
  struct Ends {
    std::shared_ptr<End> first;
    std::shared_ptr<End> second;
  };
  const auto ends = std::make_shared<Ends>();
  Connection& connection =
      network.connect(first, second, [ends, first](Connection& /*which*/, Node who) {
        (who == first ? ends->first : ends->second)->changed();
      });
  ends->first = std::make_shared<End>(connection, first);
  ends->second = std::make_shared<End>(connection, second);
  ends->first->face(ends->second);
  ends->second->face(ends->first);
  return {std::make_unique<DataStream>(ends->first, ends->second, chance),
          std::make_unique<DataStream>(ends->second, ends->first, chance)};
}

}  // namespace elastic::simulation
