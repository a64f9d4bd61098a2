#include "benchmarks/peers/bare/tcp_peer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "benchmarks/peers/bare/reduction.hpp"
#include "benchmarks/peers/bare/ring_sockets.hpp"
#include "benchmarks/peers/bare/spin_backoff.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::bench {

namespace {

/// The most bytes of one system call, so that sending and receiving take turns.
constexpr std::size_t kSegmentBytes = std::size_t{256} << 10;
/// Size up to which two ranks exchange whole tensors: one exchange instead of two.
constexpr std::size_t kSwappedBytes = kSegmentBytes;
struct Tensors {
  const std::byte* input;
  std::byte* output;
  std::size_t bytes;
};

/// A ring allreduce of n ranks: a reduce-scatter in n - 1 steps, then an allgather in n - 1 steps.
/// In each step a rank sends one part to the next rank, and receives another from the previous
/// rank. All steps form one stream of bytes in each direction, so that a rank passes bytes on as
/// they arrive. Cost for b bytes: a rank sends and receives 2 (n - 1) / n b bytes.
class RingCall {
 public:
  RingCall(const PeerStart& start, const RingSockets& sockets, SpinBackoff& backoff,
           const Reduction& reduction, std::vector<std::byte>& scratch, const Tensors& tensors)
      : rank_(start.rank),
        ranks_(start.ranks),
        sockets_(sockets),
        backoff_(backoff),
        reduction_(reduction),
        scratch_(scratch),
        tensors_(tensors) {}

  Status run();

 private:
  /// A place in a stream. Step s of the stream from the previous rank is step s + 1 of the stream
  /// to the next rank, which passes the received bytes on.
  struct Place {
    int step = 0;
    std::size_t done = 0;  ///< bytes of this step
  };
  int steps() const { return 2 * (ranks_ - 1); }
  /// The part that step `step` of the stream to the next rank carries.
  int part(int step) const { return plan::around(rank_, -step, ranks_); }
  std::size_t begin(int part) const;
  std::size_t bytes(int part) const { return begin(part + 1) - begin(part); }
  /// Skips steps without bytes.
  void go_to_next_part(Place& place, int shift) const;

  bool sends() const { return out_.step < steps(); }
  bool receives() const { return in_.step < steps(); }
  /// Bytes of the current step that are ready to be sent.
  std::size_t sendable() const;
  Result<std::size_t> send();
  Result<std::size_t> receive();
  Result<std::size_t> receive_result(std::size_t at, std::size_t most);
  Result<std::size_t> receive_operand(std::size_t at, std::size_t most);

  const int rank_;
  const int ranks_;
  const RingSockets& sockets_;
  SpinBackoff& backoff_;
  const Reduction& reduction_;
  std::vector<std::byte>& scratch_;
  const Tensors tensors_;
  Place out_;
  Place in_;
  std::size_t carried_ = 0;  ///< bytes of an incomplete element in the scratch
};

std::size_t RingCall::begin(int part) const {
  const std::size_t element = reduction_.element();
  return plan::part_begin(tensors_.bytes / element, static_cast<std::size_t>(ranks_),
                          static_cast<std::size_t>(part)) *
         element;
}

void RingCall::go_to_next_part(Place& place, int shift) const {
  while (place.step < steps() && place.done == bytes(part(place.step + shift))) {
    place = {place.step + 1, 0};
  }
}

std::size_t RingCall::sendable() const {
  if (!sends()) return 0;
  const std::size_t all = bytes(part(out_.step));
  if (out_.step == 0 || in_.step >= out_.step) return all - out_.done;
  return in_.step + 1 == out_.step ? in_.done - out_.done : 0;
}

Result<std::size_t> RingCall::send() {
  const std::size_t most = std::min(sendable(), kSegmentBytes);
  if (most == 0) return std::size_t{0};
  const std::byte* const from = out_.step == 0 ? tensors_.input : tensors_.output;
  auto sent = sockets_.send({from + begin(part(out_.step)) + out_.done, most});
  if (!sent.ok()) return sent;
  out_.done += sent.value();
  go_to_next_part(out_, 0);
  return sent;
}

Result<std::size_t> RingCall::receive() {
  const int part_in = part(in_.step + 1);
  const std::size_t at = begin(part_in) + in_.done;
  const std::size_t most = std::min(bytes(part_in) - in_.done, kSegmentBytes);
  auto got = in_.step < ranks_ - 1 ? receive_operand(at, most) : receive_result(at, most);
  go_to_next_part(in_, 1);
  return got;
}

Result<std::size_t> RingCall::receive_result(std::size_t at, std::size_t most) {
  auto got = sockets_.receive({tensors_.output + at, most});
  if (got.ok()) in_.done += got.value();
  return got;
}

Result<std::size_t> RingCall::receive_operand(std::size_t at, std::size_t most) {
  auto got = sockets_.receive({scratch_.data() + carried_, most - carried_});
  if (!got.ok()) return got;
  const std::size_t there = carried_ + got.value();
  const std::size_t whole = there / reduction_.element() * reduction_.element();
  std::byte* const into = tensors_.output + at;
  if (in_.step == ranks_ - 2) {
    // Cached stores, because the result is read again to be sent.
    reduction_.conclude(into, tensors_.input + at, scratch_.data(), whole,
                        kernels::Store::kTemporal);
  } else {
    reduction_.combine(into, tensors_.input + at, scratch_.data(), whole);
  }
  carried_ = there - whole;
  std::memmove(scratch_.data(), scratch_.data() + whole, carried_);
  in_.done += whole;
  return got;
}

Status RingCall::run() {
  go_to_next_part(out_, 0);
  go_to_next_part(in_, 1);
  int idle = 0;
  while (sends() || receives()) {
    std::size_t moved = 0;
    if (sends()) {
      auto sent = send();
      if (!sent.ok()) return sent.status();
      moved += sent.value();
    }
    if (receives()) {
      auto got = receive();
      if (!got.ok()) return got.status();
      moved += got.value();
    }
    if (moved > 0) {
      backoff_.came(std::exchange(idle, 0));
    } else if (!backoff_.rest(++idle)) {
      if (Status status = sockets_.wait(sendable() > 0, receives()); !status.ok()) return status;
    }
  }
  return {};
}

/// Two-rank exchange: both ranks send their whole tensor, and reduce the one that they receive.
Status swap_all(const PeerStart& start, const RingSockets& sockets, SpinBackoff& backoff,
                const Reduction& reduction, std::vector<std::byte>& scratch,
                const Tensors& tensors) {
  std::size_t sent = 0;
  std::size_t received = 0;
  int idle = 0;
  while (sent < tensors.bytes || received < tensors.bytes) {
    std::size_t moved = 0;
    if (sent < tensors.bytes) {
      auto now = sockets.send({tensors.input + sent, tensors.bytes - sent});
      if (!now.ok()) return now.status();
      sent += now.value();
      moved += now.value();
    }
    if (received < tensors.bytes) {
      auto now = sockets.receive({scratch.data() + received, tensors.bytes - received});
      if (!now.ok()) return now.status();
      received += now.value();
      moved += now.value();
    }
    if (moved > 0) {
      backoff.came(std::exchange(idle, 0));
    } else if (!backoff.rest(++idle)) {
      Status status = sockets.wait(sent < tensors.bytes, received < tensors.bytes);
      if (!status.ok()) return status;
    }
  }
  const bool first = start.rank == 0;
  reduction.conclude(tensors.output, first ? tensors.input : scratch.data(),
                     first ? scratch.data() : tensors.input, tensors.bytes,
                     kernels::Store::kTemporal);
  return {};
}

class TcpPeer final : public Peer {
 public:
  TcpPeer(const PeerStart& start, RingSockets sockets)
      : start_(start),
        sockets_(std::move(sockets)),
        reduction_(start.dtype, start.op, start.ranks),
        scratch_(kSegmentBytes) {}

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override {
    const Tensors tensors{static_cast<const std::byte*>(input.data),
                          static_cast<std::byte*>(output.data), output.bytes()};
    return PreparedCall([this, tensors] {
      if (start_.ranks == 2 && tensors.bytes <= kSwappedBytes) {
        return swap_all(start_, sockets_, backoff_, reduction_, scratch_, tensors);
      }
      return RingCall(start_, sockets_, backoff_, reduction_, scratch_, tensors).run();
    });
  }

 private:
  const PeerStart start_;
  const RingSockets sockets_;
  SpinBackoff backoff_{1};
  const Reduction reduction_;
  std::vector<std::byte> scratch_;
};

}  // namespace

Result<std::unique_ptr<Peer>> open_tcp_peer(const PeerStart& start) {
  auto sockets = RingSockets::connect(start);
  if (!sockets.ok()) return sockets.status();
  return std::unique_ptr<Peer>(std::make_unique<TcpPeer>(start, std::move(sockets).value()));
}

}  // namespace elastic::bench
