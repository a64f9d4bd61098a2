#include "base/secret.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <string_view>
#include <unistd.h>

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace elastic {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kMostSecretBytes = 4096;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size() + 1);  // with a line's end, so that no copy is left behind
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

int digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

}  // namespace

struct Secret::Page {
  std::array<std::byte, kBytes> bytes{};
  bool present = true;  ///< false in a forked child, where the kernel has wiped the page
};

Secret::Secret(std::span<const std::byte, kBytes> bytes) {
  void* const room =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  // An old kernel knows one of them or neither; the secret works there as well.
  (void)::madvise(room, sizeof(Page), MADV_DONTDUMP);
  (void)::madvise(room, sizeof(Page), MADV_WIPEONFORK);
  auto* const page = new (room) Page;
  std::copy(bytes.begin(), bytes.end(), page->bytes.begin());
  page_ = std::shared_ptr<const Page>(page, [](Page* its) {
    OPENSSL_cleanse(its, sizeof *its);
    ::munmap(its, sizeof *its);
  });
}

std::span<const std::byte> Secret::bytes() const {
  if (!page_ || !page_->present) return {};
  return page_->bytes;
}

bool operator==(const Secret& a, const Secret& b) {
  const auto left = a.bytes();
  const auto right = b.bytes();
  return left.size() == right.size() &&
         (left.empty() || CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0);
}

SecretText::~SecretText() {
  OPENSSL_cleanse(text_.data(), text_.size());
}

void random_bytes(std::span<std::byte> into) {
  // A nonce that can be guessed would let any peer in: a machine without randomness runs nothing.
  // The kernel's, not OpenSSL's: that keeps a generator per thread, which threads that outlive the
  // program's static objects leak.
  if (::getentropy(into.data(), into.size()) != 0) std::abort();
}

std::string random_id() {
  std::array<std::byte, 16> bytes{};
  random_bytes(bytes);
  return hex(bytes);
}

SessionKey random_session_key() {
  SessionKey key{};
  random_bytes(key);
  return key;
}

Secret random_secret() {
  std::array<std::byte, Secret::kBytes> bytes{};
  random_bytes(bytes);
  Secret made(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return made;
}

Result<Secret> parse_secret(std::string_view text, const std::string& source) {
  constexpr std::string_view kWhite = " \t\r\n";
  const Status bad(Code::kInvalidArgument,
                   source + " does not hold a secret: 64 hexadecimal digits are expected");
  const auto first = text.find_first_not_of(kWhite);
  if (first == std::string_view::npos) return bad;
  text = text.substr(first, text.find_last_not_of(kWhite) - first + 1);
  std::array<std::byte, Secret::kBytes> bytes{};
  if (text.size() != 2 * bytes.size()) return bad;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return bad;
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  Secret made(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return made;
}

Result<Secret> read_secret(int fd, const std::string& source) {
  SecretText holder(std::string(kMostSecretBytes, '\0'));
  std::string& text = holder.text();
  std::size_t length = 0;
  // Several workers may inherit one descriptor, and with it one file offset.
  const bool seekable = ::lseek(fd, 0, SEEK_CUR) >= 0;
  while (length < text.size()) {
    const auto rest = text.size() - length;
    const ssize_t got = seekable
                            ? ::pread(fd, text.data() + length, rest, static_cast<off_t>(length))
                            : ::read(fd, text.data() + length, rest);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Status(Code::kInvalidArgument,
                    "cannot read the secret from " + source + ": " + std::strerror(errno));
    }
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return parse_secret(std::string_view(text).substr(0, length), source);
}

Result<Secret> read_secret_line(int fd, const std::string& source) {
  SecretText holder(std::string(kMostSecretBytes, '\0'));
  std::string& text = holder.text();
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(fd, text.data() + length, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Status(Code::kInvalidArgument,
                    "cannot read the secret from " + source + ": " + std::strerror(errno));
    }
    if (got == 0 || text[length] == '\n') break;
    ++length;
  }
  return parse_secret(std::string_view(text).substr(0, length), source);
}

Result<UniqueFd> open_secret_file(const std::string& path, const std::string& what) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return Status(Code::kInvalidArgument,
                  "cannot open the " + what + " file " + path + ": " + std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    // Its owner can read it and write another secret into it.
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      return Status(Code::kInvalidArgument, "the " + what + " file " + path + " belongs to user " +
                                                std::to_string(info.st_uid) +
                                                ": it must belong to the user that runs the job, " +
                                                std::to_string(::geteuid()) + ", or to root");
    }
    // Root may let a group read it, as it does with the Secrets of Kubernetes.
    const bool is_of_root = info.st_uid == 0 && ::geteuid() != 0;
    if ((info.st_mode & (is_of_root ? 037U : 077U)) != 0) {
      return Status(Code::kInvalidArgument, "the " + what + " file " + path +
                                                " can be read by others; run: chmod 600 " + path);
    }
  }
  return file;
}

Result<Secret> read_secret_file(const std::string& path) {
  const Result<UniqueFd> file = open_secret_file(path, "secret");
  if (!file.ok()) return file.status();
  return read_secret(file.value().get(), "the secret file " + path);
}

std::string to_hex(const Secret& secret) {
  return hex(secret.bytes());
}

}  // namespace elastic
