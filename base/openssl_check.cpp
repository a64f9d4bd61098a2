#include "base/openssl_check.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <openssl/conf.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/hmac.hpp"
#include "base/tls_session.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

namespace {

/// RFC 4231, test case 2.
constexpr std::string_view kKey = "Jefe";
constexpr std::string_view kText = "what do ya want for nothing?";
constexpr std::array<unsigned char, 32> kAnswer = {
    0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
    0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};

Status check_hmac() {
  const Result<HmacSha256> made =
      hmac_sha256(std::as_bytes(std::span(kKey)), std::as_bytes(std::span(kText)));
  if (!made.ok()) return made.status();
  const auto answer = std::as_bytes(std::span(kAnswer));
  if (std::equal(answer.begin(), answer.end(), made.value().begin(), made.value().end())) return {};
  return Status(Code::kInternal, "OpenSSL computes a wrong HMAC-SHA256");
}

/// One end of a session, which sends what the session has sealed.
struct End {
  End(int fd, TlsSession::Role role, const SessionKey& key) : socket(fd), session(fd, role, key) {}

  Result<bool> shake() {
    Result<bool> done = session.handshake();
    const auto sealed = session.sealed();
    const ssize_t sent =
        ::send(socket.get(), sealed.data(), sealed.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != static_cast<ssize_t>(sealed.size())) {
      return Status(Code::kUnavailable, std::string("send: ") + std::strerror(errno));
    }
    session.sent(sealed.size());
    return done;
  }

  UniqueFd socket;
  TlsSession session;
};

/// A handshake takes three turns; everything that a turn sends fits into the socket's buffer.
Status check_tls() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return Status(Code::kUnavailable, std::string("socketpair: ") + std::strerror(errno));
  }
  const SessionKey key = random_session_key();
  End dialer(ends[0], TlsSession::Role::kDialer, key);
  End acceptor(ends[1], TlsSession::Role::kAcceptor, key);
  constexpr int kTurns = 4;
  bool done = false;
  for (int turn = 0; turn < kTurns && !done; ++turn) {
    const Result<bool> there = dialer.shake();
    if (!there.ok()) return there.status();
    const Result<bool> here = acceptor.shake();
    if (!here.ok()) return here.status();
    done = there.value() && here.value();
  }
  if (!done) return Status(Code::kInternal, "a handshake of TLS 1.3 does not end");
  return {};
}

std::string configuration_file() {
  char* const path = CONF_get1_default_config_file();
  const std::string text = path == nullptr ? "openssl.cnf" : path;
  OPENSSL_free(path);
  return text;
}

}  // namespace

void prepare_openssl() {
  // A failure shows in `check_openssl`.
  (void)OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr);
}

Status check_openssl(bool encrypt) {
  const bool ready = OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr) == 1;
  Status failed =
      ready ? check_hmac() : Status(Code::kInternal, "OpenSSL does not start: " + openssl_reason());
  const char* needs = "connections cannot be authenticated";
  if (failed.ok() && encrypt) {
    failed = check_tls();
    needs = "connections cannot be encrypted with TLS 1.3";
  }
  if (failed.ok()) return {};
  return Status(Code::kUnavailable,
                std::string(needs) + ": " + failed.message() + ". OpenSSL's configuration is " +
                    configuration_file() +
                    " (OPENSSL_CONF): let it activate the provider 'default' (or 'fips'), or unset "
                    "OPENSSL_CONF");
}

}  // namespace elastic
