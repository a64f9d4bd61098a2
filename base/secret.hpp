#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

/// The job's shared secret. Its bytes lie in pages of their own, which are in no core dump, are
/// zeros in every child of fork(2), and are cleansed when the last copy of the object goes. Copies
/// share them. Any thread.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  /// No secret: `bytes` is empty.
  Secret() = default;
  explicit Secret(std::span<const std::byte, kBytes> bytes);

  /// Empty in a default object and in a forked child. No proof can be computed with that.
  std::span<const std::byte> bytes() const;

  friend bool operator==(const Secret& a, const Secret& b);

 private:
  struct Page;
  std::shared_ptr<const Page> page_;
};

/// The key of one encrypted connection, which both its ends derive from the secret.
using SessionKey = std::array<std::byte, 32>;

/// Text with a secret in it: cleansed at the end.
class SecretText {
 public:
  explicit SecretText(std::string text) : text_(std::move(text)) {}
  ~SecretText();
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;

  std::string& text() { return text_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Fills `into` with random bytes fit for secrets and nonces.
void random_bytes(std::span<std::byte> into);

/// 16 random bytes as hex: incarnations, job ids.
std::string random_id();

/// A fresh secret.
Secret random_secret();
/// A fresh key, for checks and tests.
SessionKey random_session_key();

/// 64 hex digits, white space around ignored. kInvalidArgument names `source`.
Result<Secret> parse_secret(std::string_view text, const std::string& source);

/// Opens a file with something secret in it. kInvalidArgument: it is not there, or other users can
/// read or write it. `what` names its kind in messages, such as "secret".
Result<UniqueFd> open_secret_file(const std::string& path, const std::string& what);
/// Reads a secret from a file, as `parse_secret` does. kInvalidArgument names the file and what is
/// wrong with it: others can read it, for instance.
Result<Secret> read_secret_file(const std::string& path);
/// From an open descriptor, which stays open: a file from its beginning, a pipe to its end.
Result<Secret> read_secret(int fd, const std::string& source);

/// From a pipe, up to the end of its first line; what follows is not read.
Result<Secret> read_secret_line(int fd, const std::string& source);

std::string to_hex(const Secret& secret);

}  // namespace elastic
