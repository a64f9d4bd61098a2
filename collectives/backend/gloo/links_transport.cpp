#include "collectives/backend/gloo/links_transport.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include <gloo/transport/address.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

namespace elastic::collectives {
namespace {

namespace gt = gloo::transport;
using transport::Link;
using transport::Mesh;

[[noreturn]] void unsupported() {
  throw LinksFailure(
      Status(Code::kInternal, "Gloo asks of its transport what none of its collectives needs"));
}

/// The mesh, and how many messages of the operation have been posted on each of its links.
struct Links {
  struct Posted {
    std::size_t sends = 0;
    std::size_t receives = 0;
  };
  std::shared_ptr<Mesh> mesh;
  std::vector<Posted> posted;

  Posted& posted_to(int rank) { return posted[static_cast<std::size_t>(rank)]; }

  void wait_until(const std::function<bool()>& done) const {
    const Status status = mesh->run_until(done);
    if (status.ok()) return;
    mesh->abandon();  // before the collective releases its memory
    throw LinksFailure(status);
  }
};

/// Memory that Gloo sends from and receives into. It ignores Gloo's slots: messages between two
/// ranks match in order, and each collective uses a single slot.
class LinksBuffer final : public gt::UnboundBuffer {
 public:
  LinksBuffer(std::shared_ptr<Links> links, void* at, std::size_t bytes)
      : gt::UnboundBuffer(at, bytes), links_(std::move(links)) {}

  void send(int to, std::uint64_t, std::size_t offset, std::size_t bytes) override {
    links_->mesh->link(to).send(part(offset, bytes));
    sends_.push_back({to, ++links_->posted_to(to).sends});
  }
  void recv(int from, std::uint64_t, std::size_t offset, std::size_t bytes) override {
    links_->mesh->link(from).receive({part(offset, bytes), {}});
    receives_.push_back({from, ++links_->posted_to(from).receives});
  }
  void recv(std::vector<int>, std::uint64_t, std::size_t, std::size_t) override { unsupported(); }

  // Gloo's time limits detect the loss of a peer. They are ignored: the mesh detects it by itself.
  bool waitSend(int* rank, std::chrono::milliseconds) override {
    const Message message = next(sends_, rank);
    const Link& link = links_->mesh->link(message.peer);
    links_->wait_until([&] { return link.sent() >= message.number; });
    return true;
  }
  bool waitRecv(int* rank, std::chrono::milliseconds) override {
    const Message message = next(receives_, rank);
    const Link& link = links_->mesh->link(message.peer);
    links_->wait_until([&] { return link.received() >= message.number; });
    return true;
  }
  void abortWaitRecv() override { unsupported(); }
  void abortWaitSend() override { unsupported(); }

 private:
  struct Message {
    int peer = 0;
    std::size_t number = 0;  // within the operation, on the link to `peer`; from 1
  };

  std::span<std::byte> part(std::size_t offset, std::size_t bytes) const {
    const std::size_t length = bytes == kUnspecifiedByteCount ? size - offset : bytes;
    return {static_cast<std::byte*>(ptr) + offset, length};
  }
  static Message next(std::deque<Message>& queue, int* rank) {
    const Message message = queue.front();
    queue.pop_front();
    if (rank != nullptr) *rank = message.peer;
    return message;
  }

  const std::shared_ptr<Links> links_;
  std::deque<Message> sends_;
  std::deque<Message> receives_;
};

/// A pair without function: the collectives in use only ask whether it exists.
class LinksPair final : public gt::Pair {
 public:
  const gt::Address& address() const override { unsupported(); }
  void connect(const std::vector<char>&) override { unsupported(); }
  void close() override {}
  void setSync(bool, bool) override { unsupported(); }
  // Part of Gloo's interface since 2024.
  bool isConnected() { return true; }  // NOLINT(readability-identifier-naming)
  std::unique_ptr<gt::Buffer> createSendBuffer(int, void*, std::size_t) override { unsupported(); }
  std::unique_ptr<gt::Buffer> createRecvBuffer(int, void*, std::size_t) override { unsupported(); }
  void send(gt::UnboundBuffer*, std::uint64_t, std::size_t, std::size_t) override { unsupported(); }
  void recv(gt::UnboundBuffer*, std::uint64_t, std::size_t, std::size_t) override { unsupported(); }
};

class LinksTransport final : public gt::Context {
 public:
  explicit LinksTransport(std::shared_ptr<Mesh> mesh)
      : gt::Context(mesh->rank(), mesh->size()), links_(std::make_shared<Links>()) {
    links_->mesh = std::move(mesh);
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) createPair(peer);
    }
  }

  std::unique_ptr<gt::Pair>& createPair(int peer) override {
    return pairs_.at(static_cast<std::size_t>(peer)) = std::make_unique<LinksPair>();
  }
  std::unique_ptr<gt::UnboundBuffer> createUnboundBuffer(void* at, std::size_t bytes) override {
    return std::make_unique<LinksBuffer>(links_, at, bytes);
  }

  void begin(const transport::OpTag& tag, const transport::Fingerprint& fingerprint) {
    links_->mesh->begin(tag, fingerprint);
    links_->posted.assign(static_cast<std::size_t>(size), {});
  }

 private:
  const std::shared_ptr<Links> links_;
};

}  // namespace

LinksContext::LinksContext(std::shared_ptr<Mesh> mesh) : gloo::Context(mesh->rank(), mesh->size()) {
  transportContext_ = std::make_shared<LinksTransport>(std::move(mesh));
}

void LinksContext::begin(const transport::OpTag& tag, const transport::Fingerprint& fingerprint) {
  static_cast<LinksTransport&>(*transportContext_).begin(tag, fingerprint);
}

}  // namespace elastic::collectives
