#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include <sys/stat.h>

#include "base/handshake.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kMostBytes = 4096;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

int digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

Result<Secret> parse(std::string_view text, const std::string& source) {
  constexpr std::string_view kWhite = " \t\r\n";
  const Status bad(Code::kInvalidArgument,
                   source + " does not hold a secret: 64 hexadecimal digits are expected");
  const auto first = text.find_first_not_of(kWhite);
  if (first == std::string_view::npos) return bad;
  text = text.substr(first, text.find_last_not_of(kWhite) - first + 1);
  Secret secret{};
  if (text.size() != 2 * secret.size()) return bad;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return bad;
    secret[i] = static_cast<std::byte>(high * 16 + low);
  }
  return secret;
}

Result<Secret> read_secret(int fd, const std::string& source) {
  std::string text(kMostBytes, '\0');
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
  return parse(std::string_view(text).substr(0, length), source);
}

}  // namespace

void random_bytes(std::span<std::byte> into) {
  // A nonce that can be guessed would let anybody in: a machine without randomness runs nothing.
  // The kernel's, not OpenSSL's: that keeps a generator per thread, which threads that outlive the
  // program's static objects leak.
  if (::getentropy(into.data(), into.size()) != 0) std::abort();
}

std::string random_id() {
  std::array<std::byte, 16> bytes{};
  random_bytes(bytes);
  return hex(bytes);
}

Secret random_secret() {
  Secret secret{};
  random_bytes(secret);
  return secret;
}

Result<Secret> read_secret_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return Status(Code::kInvalidArgument,
                  "cannot open the secret file " + path + ": " + std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077U) != 0) {
    return Status(Code::kInvalidArgument,
                  "the secret file " + path + " can be read by others; run: chmod 600 " + path);
  }
  return read_secret(file.get(), "the secret file " + path);
}

Result<Secret> read_secret_fd(int fd) {
  return read_secret(fd, "descriptor " + std::to_string(fd));
}

std::string to_hex(const Secret& secret) {
  return hex(secret);
}

}  // namespace elastic
