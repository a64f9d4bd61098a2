#include "rendezvous/protocol/connection.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/tls_handshake.hpp"
#include "base/unauthenticated_connections.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/without_brackets.hpp"

namespace elastic::rendezvous {
namespace asio = boost::asio;

namespace {

using Error = boost::system::error_code;

/// Room for the largest message beside others.
constexpr std::size_t kMostQueuedBytes = kMaxMessageBytes + (std::size_t{8} << 20U);
constexpr Milliseconds kLinger{2000};
/// Unacknowledged data, heartbeats at the least, for that long means that the host is gone.
constexpr int kUserTimeoutMs = 10000;
/// A launcher may have nothing to send for hours, and is to notice that the other side has given
/// the connection up while the network was down.
constexpr int kIdleSeconds = 5;
constexpr int kBetweenProbesSeconds = 2;
constexpr int kProbes = 3;

void set_options(Connection::Socket& socket) {
  Error ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&socket](int option, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_USER_TIMEOUT, kUserTimeoutMs);
  set(TCP_KEEPIDLE, kIdleSeconds);
  set(TCP_KEEPINTVL, kBetweenProbesSeconds);
  set(TCP_KEEPCNT, kProbes);
}

std::string peer_of(const Connection::Socket& socket) {
  Error error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "a peer that is gone" : to_string(endpoint);
}

}  // namespace

std::string to_string(const asio::ip::tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(endpoint.port());
}

Result<HostPort> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  HostPort parts;
  if (colon != std::string::npos) {
    parts = {address.substr(0, colon), address.substr(colon + 1)};
    const std::string bare = without_brackets(parts.host);
    if (bare != parts.host) {
      parts.host = bare;
    } else if (parts.host.find_first_of(":[]") != std::string::npos) {
      parts.host.clear();
    }
  }
  const bool digits = parts.port.find_first_not_of("0123456789") == std::string::npos;
  if (parts.host.empty() || parts.port.empty() || parts.port.size() > 5 || !digits ||
      std::stoi(parts.port) > 65535) {
    return Status(Code::kInvalidArgument,
                  "'" + address + "' is not an address; it must be HOST:PORT or [IPV6]:PORT");
  }
  return parts;
}

Result<std::vector<std::string>> parse_addresses(const std::string& list) {
  std::vector<std::string> addresses;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    addresses.push_back(list.substr(begin, end - begin));
    if (const auto parts = parse_address(addresses.back()); !parts.ok()) return parts.status();
    begin = end + 1;
  }
  return addresses;
}

Connection::Connection(Socket socket, std::string dialed)
    : socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      peer_(peer_of(socket_)),
      dialed_(std::move(dialed)) {
  set_options(socket_);
}

std::string Connection::origin() const {
  Error error;
  const auto endpoint = socket_.remote_endpoint(error);
  return error ? std::string() : origin_of(endpoint.address());
}

Status Connection::lost() const {
  if (damaged_) return Status(Code::kDamaged, why_);
  return Status(Code::kPeerLost, why_.empty() ? "connection closed" : why_);
}

asio::awaitable<bool> Connection::read_exactly(void* into, std::size_t bytes) {
  if (tls_) co_return co_await open_exactly({static_cast<std::byte*>(into), bytes});
  Error error;
  co_await asio::async_read(socket_, asio::buffer(into, bytes),
                            asio::redirect_error(asio::use_awaitable, error));
  if (error && error != asio::error::eof && why_.empty()) why_ = error.message();
  co_return !error;
}

asio::awaitable<bool> Connection::open_exactly(std::span<std::byte> into) {
  for (bool alive = socket_.is_open(); alive;) {
    const Result<std::size_t> got = tls_->open(into);
    if (!got.ok()) {
      damaged_ = why_.empty() && got.status().code() == Code::kProtocol;
      if (why_.empty()) why_ = got.status().message();
      co_return false;
    }
    into = into.subspan(got.value());
    if (into.empty()) co_return true;
    alive = co_await arrival();
  }
  co_return false;
}

/// Waits until the socket has something to say. False when it is closed: its descriptor may be
/// another's then.
asio::awaitable<bool> Connection::arrival() {
  Error error;
  co_await socket_.async_wait(Socket::wait_read, asio::redirect_error(asio::use_awaitable, error));
  if (error && why_.empty()) why_ = error.message();
  co_return !error && socket_.is_open();
}

/// Messages go under TLS from then on.
asio::awaitable<Status> Connection::secure(TlsSession::Role role, const SessionKey& session_key) {
  Result<TlsSessionPtr> secured = co_await shake_hands_of_tls(socket_, role, session_key);
  if (!secured.ok()) co_return why_.empty() ? secured.status() : lost();
  tls_ = std::move(secured).value();
  co_return Status();
}

asio::awaitable<bool> Connection::write_all(const void* from, std::size_t bytes) {
  Error error;
  co_await asio::async_write(socket_, asio::buffer(from, bytes),
                             asio::redirect_error(asio::use_awaitable, error));
  if (error && why_.empty()) why_ = error.message();
  co_return !error;
}

asio::awaitable<Status> Connection::greet(const Secret& secret, bool encrypt,
                                          const Greeting& greeting) {
  const auto self = shared_from_this();
  const std::string context = encode_greeting(greeting);
  if (context.size() > handshake::kMaxContextBytes) {
    co_return Status(Code::kInvalidArgument, "the job's name is too long");
  }
  const handshake::Dialer dialer(secret, handshake::Purpose::kControl, context, encrypt);
  const std::vector<std::byte> hello = dialer.hello();
  std::array<std::byte, handshake::kChallengeBytes> challenge{};
  bool alive = co_await write_all(hello.data(), hello.size());
  if (alive) alive = co_await read_exactly(challenge.data(), challenge.size());
  if (!alive) co_return lost();
  const Result<std::vector<std::byte>> proof = dialer.answer(challenge);
  if (!proof.ok()) {
    const bool here = proof.status().code() == Code::kInternal;
    co_return Status(here ? Code::kInternal : Code::kRefused,
                     peer_ + ": " + proof.status().message());
  }
  std::array<std::byte, handshake::kVerdictBytes> verdict{};
  alive = co_await write_all(proof.value().data(), proof.value().size());
  if (alive) alive = co_await read_exactly(verdict.data(), verdict.size());
  if (!alive) co_return lost();
  Status let_in = handshake::Dialer::finish(verdict);
  if (!let_in.ok() || !encrypt) co_return let_in;
  const Result<SessionKey> key = dialer.session_key(challenge);
  if (!key.ok()) co_return key.status();
  co_return co_await secure(TlsSession::Role::kDialer, key.value());
}

asio::awaitable<Result<Greeting>> Connection::accept_handshake(
    const Secret& secret, bool encrypt, std::function<void()> on_first_bytes) {
  const auto self = shared_from_this();
  handshake::Acceptor acceptor(secret, handshake::Purpose::kControl, encrypt);
  std::array<std::byte, handshake::kHelloBytes> hello{};
  bool alive = co_await read_exactly(hello.data(), hello.size());
  if (!alive) co_return lost();
  on_first_bytes();
  const Result<std::size_t> context_bytes = acceptor.hello(hello);
  if (!context_bytes.ok()) {
    // A dialer of another version learns it from the challenge; others get no answer.
    const Result<std::vector<std::byte>> version = acceptor.challenge({});
    if (version.ok() && std::equal(hello.begin(), hello.begin() + 4, version.value().begin())) {
      alive = co_await write_all(version.value().data(), version.value().size());
    }
    co_return context_bytes.status();
  }
  std::vector<std::byte> context(context_bytes.value());
  alive = co_await read_exactly(context.data(), context.size());
  if (!alive) co_return lost();
  const Result<std::vector<std::byte>> challenge = acceptor.challenge(context);
  if (!challenge.ok()) co_return challenge.status();
  std::array<std::byte, handshake::kProofBytes> proof{};
  alive = co_await write_all(challenge.value().data(), challenge.value().size());
  if (!alive) co_return lost();
  if (Status status = acceptor.agree(); !status.ok()) co_return status;
  alive = co_await read_exactly(proof.data(), proof.size());
  // The dialer checks the secret first.
  if (!alive && why_.empty()) why_ = "it hung up on this side's proof: another secret?";
  if (!alive) co_return lost();
  Status checked = acceptor.check(proof);
  if (!checked.ok()) co_return checked;
  const auto verdict = handshake::Acceptor::verdict();
  alive = co_await write_all(verdict.data(), verdict.size());
  if (!alive) co_return lost();
  if (encrypt) {
    const Result<SessionKey> key = acceptor.session_key();
    if (!key.ok()) co_return key.status();
    Status secured = co_await secure(TlsSession::Role::kAcceptor, key.value());
    if (!secured.ok()) co_return secured;
  }
  co_return decode_greeting(acceptor.context());
}

asio::awaitable<Result<Message>> Connection::read() {
  const auto self = shared_from_this();
  // Data that TLS has read already comes without waiting: a peer that sends much must not keep the
  // thread from the others.
  if (tls_) co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  FrameHeader header{};
  bool alive = co_await read_exactly(header.data(), header.size());
  if (!alive) co_return lost();
  const Result<FrameStart> start = decode_start(header);
  if (!start.ok()) co_return start.status();
  std::string text(start.value().bytes, '\0');
  alive = co_await read_exactly(text.data(), text.size());
  if (!alive) co_return lost();
  received_bytes_ += header.size() + text.size();
  Status whole = check_text(start.value(), text);
  if (!whole.ok()) co_return whole;
  co_return unpack_(text);
}

Frame::Frame(const Message& message)
    : text_(std::make_shared<const std::string>(framed(pack(message)))) {}

void Connection::send(const Frame& frame) {
  if (closing_ || !socket_.is_open()) return;
  std::shared_ptr<const std::string> text = frame.text();
  if (queued_bytes_ + text->size() > kMostQueuedBytes) {
    return abort("does not read what it is sent");
  }
  if (tls_) {
    if (Status status = tls_->seal(std::as_bytes(std::span(*text))); !status.ok()) {
      return abort(status.message());
    }
    const std::span<const std::byte> sealed = tls_->sealed();
    text = std::make_shared<const std::string>(reinterpret_cast<const char*>(sealed.data()),
                                               sealed.size());
    tls_->sent(sealed.size());
  }
  queued_bytes_ += text->size();
  queue_.push_back(std::move(text));
  if (queue_.size() == 1) write_next();
}

void Connection::write_next() {
  const bool large = queue_.front()->size() >= LargeWrites::kLargeBytes;
  if (!large || !large_writes_) return write_front({});
  large_writes_->wait([self = shared_from_this()](LargeWrites::Turn turn) {
    asio::post(self->socket_.get_executor(),
               [self, turn = std::move(turn)]() mutable { self->write_front(std::move(turn)); });
  });
}

/// Keeps the turn until the frame is written.
void Connection::write_front(LargeWrites::Turn turn) {
  asio::async_write(socket_, asio::buffer(*queue_.front()),
                    [self = shared_from_this(), turn = std::move(turn)](
                        const Error& error, std::size_t /*bytes*/) mutable {
                      turn = {};
                      if (error) return self->abort(error.message());
                      self->queued_bytes_ -= self->queue_.front()->size();
                      self->queue_.pop_front();
                      if (!self->queue_.empty()) return self->write_next();
                      if (self->closing_) self->finish_sending();
                    });
}

void Connection::close() {
  if (closing_) return;
  closing_ = true;
  set_deadline(kLinger, "connection closed");
  if (queue_.empty()) finish_sending();
}

void Connection::finish_sending() {
  Error ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

asio::awaitable<void> Connection::drain() {
  const auto self = shared_from_this();
  close();
  for (bool more = true; more;) {
    const Result<Message> message = co_await read();
    more = message.ok();
  }
  abort("connection closed");
}

void Connection::abort(const std::string& why) {
  if (why_.empty()) why_ = why;
  closing_ = true;
  deadline_.cancel();
  Error ignored;
  socket_.close(ignored);
}

void Connection::set_deadline(Duration timeout, std::string why) {
  deadline_.expires_after(timeout);
  // The number tells a deadline that was replaced after it had passed.
  deadline_.async_wait([self = shared_from_this(), why = std::move(why),
                        number = ++deadline_number_](const Error& error) {
    if (!error && number == self->deadline_number_) self->abort(why);
  });
}

void Connection::no_deadline() {
  ++deadline_number_;
  deadline_.cancel();
}

}  // namespace elastic::rendezvous
