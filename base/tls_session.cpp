#include "base/tls_session.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/hmac.hpp"

namespace elastic {

namespace {

/// The bytes that are taken from the socket at a time: several records.
constexpr std::size_t kReadBytes = 128 * 1024;
constexpr std::array<unsigned char, 7> kIdentity = {'e', 'l', 'a', 's', 't', 'i', 'c'};

}  // namespace

/// The functions that OpenSSL calls.
struct TlsCallbacks {
  static TlsSession& session_of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* bytes, int count) {
    auto& sealed = session_of(bio).sealed_;
    const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
    sealed.insert(sealed.end(), begin, begin + count);
    session_of(bio).whole_ +=
        RecordLengths::mark(std::span(sealed).subspan(session_of(bio).whole_));
    return count;
  }

  static int read(BIO* bio, char* into, int most) {
    TlsSession& session = session_of(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = 0;
    do {
      got = ::recv(session.socket_, into, static_cast<std::size_t>(most), MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
    if (got < 0 && errno != EAGAIN) session.socket_error_ = errno;
    if (got == 0) session.ended_ = true;
    if (got >= 0 || errno != EAGAIN) session.heard_ = true;
    if (got <= 0) return static_cast<int>(got);
    const std::span received(reinterpret_cast<std::byte*>(into), static_cast<std::size_t>(got));
    return session.lengths_.restore(received) ? static_cast<int>(got) : -1;
  }

  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  /// Null where OpenSSL has no memory.
  static BIO* make_bio(TlsSession& session) {
    static BIO_METHOD* const kMethod = [] {
      const int index = BIO_get_new_index();
      BIO_METHOD* const made =
          index == -1 ? nullptr : BIO_meth_new(index | BIO_TYPE_SOURCE_SINK, "elastic");
      if (made == nullptr || BIO_meth_set_write(made, write) != 1 ||
          BIO_meth_set_read(made, read) != 1 || BIO_meth_set_ctrl(made, control) != 1) {
        BIO_meth_free(made);
        return static_cast<BIO_METHOD*>(nullptr);
      }
      return made;
    }();
    BIO* const bio = kMethod == nullptr ? nullptr : BIO_new(kMethod);
    if (bio == nullptr) return nullptr;
    BIO_set_data(bio, &session);
    BIO_set_init(bio, 1);
    return bio;
  }

  /// Null where OpenSSL cannot make one; the handshake fails then.
  static SSL_SESSION* psk_of(SSL* ssl) {
    constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
    const SessionKey& key = static_cast<TlsSession*>(SSL_get_app_data(ssl))->session_key_;
    std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> psk(SSL_SESSION_new(),
                                                                  SSL_SESSION_free);
    const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
    if (!psk || cipher == nullptr ||
        SSL_SESSION_set1_master_key(psk.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                    key.size()) != 1 ||
        SSL_SESSION_set_cipher(psk.get(), cipher) != 1 ||
        SSL_SESSION_set_protocol_version(psk.get(), TLS1_3_VERSION) != 1) {
      return nullptr;
    }
    return psk.release();
  }
  static int use_psk(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** identity,
                     std::size_t* length, SSL_SESSION** psk) {
    *identity = kIdentity.data();
    *length = kIdentity.size();
    *psk = psk_of(ssl);
    return *psk == nullptr ? 0 : 1;
  }
  static int find_psk(SSL* ssl, const unsigned char* identity, std::size_t length,
                      SSL_SESSION** psk) {
    const bool known = std::equal(identity, identity + length, kIdentity.begin(), kIdentity.end());
    *psk = known ? psk_of(ssl) : nullptr;
    return known && *psk == nullptr ? 0 : 1;
  }

  /// Null where OpenSSL cannot do what is asked for. The system's openssl.cnf, which has had its
  /// say in what is new, is overruled.
  static SSL_CTX* make_context() {
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> made(SSL_CTX_new(TLS_method()), SSL_CTX_free);
    if (!made || SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(made.get(), TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(made.get(), "TLS_AES_128_GCM_SHA256") != 1 ||
        SSL_CTX_set_num_tickets(made.get(), 0) != 1) {
      return nullptr;
    }
    SSL_CTX_clear_options(made.get(), SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_NO_TLSv1_3);
    SSL_CTX_set_psk_use_session_callback(made.get(), use_psk);
    SSL_CTX_set_psk_find_session_callback(made.get(), find_psk);
    SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(made.get(), 1);
    SSL_CTX_set_default_read_buffer_len(made.get(), kReadBytes);
    return made.release();
  }
  /// One for the whole process, never freed: threads may still use it while static objects go.
  static SSL_CTX* context() {
    static SSL_CTX* const kContext = make_context();
    return kContext;
  }
};

void TlsSession::Free::operator()(ssl_st* session) const {
  SSL_free(session);
}

TlsSession::TlsSession(int socket, Role role, const SessionKey& session_key,
                       std::uint64_t records_per_key)
    : socket_(socket), session_key_(session_key), records_per_key_(records_per_key) {
  SSL_CTX* const context = TlsCallbacks::context();
  if (context != nullptr) ssl_.reset(SSL_new(context));
  BIO* const bio = ssl_ ? TlsCallbacks::make_bio(*this) : nullptr;
  if (bio == nullptr || SSL_set_app_data(ssl_.get(), this) != 1) {
    failed_ =
        Status(Code::kInternal, "OpenSSL cannot do TLS 1.3 on this machine: " + openssl_reason());
    BIO_free(bio);
    ssl_.reset();
    return;
  }
  SSL_set_bio(ssl_.get(), bio, bio);
  if (role == Role::kDialer) {
    SSL_set_connect_state(ssl_.get());
    // No certificate is trusted: only the pre-shared key counts.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

TlsSession::~TlsSession() {
  OPENSSL_cleanse(session_key_.data(), session_key_.size());
}

Result<bool> TlsSession::handshake() {
  if (!failed_.ok()) return failed_;
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) {
    OPENSSL_cleanse(session_key_.data(), session_key_.size());
    if (SSL_session_reused(ssl_.get()) == 1) return true;
    return failed_ = Status(Code::kProtocol, "TLS: the other side did not use the job's key");
  }
  if (SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ) return false;
  return failed_ = heard_ ? not_understood() : failed_here();
}

Status TlsSession::seal(std::span<const std::byte> bytes) {
  if (!failed_.ok()) return failed_;
  ERR_clear_error();
  while (!bytes.empty()) {
    const auto record = bytes.first(std::min(bytes.size(), kRecordBytes));
    bytes = bytes.subspan(record.size());
    if (++records_ % records_per_key_ == 0 &&
        SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
      return failed_ = failed_here();
    }
    std::size_t written = 0;  // all of it: there is always room
    if (SSL_write_ex(ssl_.get(), record.data(), record.size(), &written) != 1) {
      return failed_ = failed_here();
    }
  }
  return {};
}

void TlsSession::sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ < whole_) return;
  sealed_.erase(sealed_.begin(), sealed_.begin() + static_cast<std::ptrdiff_t>(whole_));
  whole_ = 0;
  sent_ = 0;
}

Result<std::size_t> TlsSession::open(std::span<std::byte> into) {
  std::size_t got = 0;
  while (got < into.size() && failed_.ok()) {
    ERR_clear_error();
    std::size_t now = 0;
    const int read = SSL_read_ex(ssl_.get(), into.data() + got, into.size() - got, &now);
    got += now;
    if (read == 1) continue;
    if (SSL_get_error(ssl_.get(), read) == SSL_ERROR_WANT_READ) break;
    failed_ = not_understood();
  }
  dry_ = got < into.size();
  if (got == 0 && !failed_.ok()) return failed_;
  return got;
}

bool TlsSession::more() const {
  return !dry_ && ssl_ && SSL_has_pending(ssl_.get()) == 1;
}

/// Why what came could not be read: the socket's word for it, or else TLS's.
Status TlsSession::not_understood() const {
  if (socket_error_ != 0) {
    return Status(Code::kPeerLost,
                  std::string("the connection broke: ") + std::strerror(socket_error_));
  }
  if (ended_) return Status(Code::kPeerLost, "the peer closed the connection");
  return Status(Code::kProtocol,
                "what came was damaged or forged on the way: TLS: " +
                    (lengths_.damaged() ? "the length of a record" : openssl_reason()));
}

/// Nothing that came has to do with it.
Status TlsSession::failed_here() {
  return Status(Code::kInternal, "TLS failed here: " + openssl_reason());
}

}  // namespace elastic
