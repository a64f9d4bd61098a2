#include "rendezvous/protocol/secret_json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace elastic::rendezvous {

namespace {

constexpr std::string_view kSecretField = R"("secret":")";
constexpr std::size_t kMostBytes = 65536;

Status unavailable(const std::string& path, int why) {
  return Status(Code::kUnavailable, path + ": " + std::strerror(why));
}

Status invalid(const std::string& path, const std::string& what) {
  return Status(Code::kInvalidArgument, path + " " + what);
}

/// Its owner could name another server in it, and every reader of it can join the job.
Status check_owner(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return unavailable(path, errno);
  if (!S_ISREG(info.st_mode)) return invalid(path, "is no file");
  if (info.st_uid != ::geteuid()) {
    return invalid(path, "belongs to user " + std::to_string(info.st_uid) +
                             ": it must belong to the user that runs the job, " +
                             std::to_string(::geteuid()));
  }
  if ((info.st_mode & 077U) != 0) {
    return invalid(path, "can be read by others; run: chmod 600 " + path);
  }
  return {};
}

/// Not by way of a stream, whose buffer would keep the secret.
Status read_text(const std::string& path, SecretText& text) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno != ENOENT)
    return invalid(path, std::string("is unreadable: ") + std::strerror(errno));
  if (!file) return unavailable(path, errno);
  if (Status status = check_owner(file.get(), path); !status.ok()) return status;
  text.text().resize(kMostBytes);
  const ssize_t got = ::pread(file.get(), text.text().data(), kMostBytes, 0);
  text.text().resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0 ? Status() : invalid(path, "is empty");
}

/// Takes the secret out of the text, and leaves the rest, which is JSON without it: what a parser
/// makes of a text is not cleansed.
Result<Secret> take_secret(std::string& text, const std::string& path) {
  const std::size_t field = text.find(kSecretField);
  const std::size_t begin = field + kSecretField.size();
  const std::size_t end = field == std::string::npos ? field : text.find('"', begin);
  if (end == std::string::npos) return invalid(path, "has no secret in it");
  Result<Secret> secret = parse_secret(std::string_view(text).substr(begin, end - begin), path);
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
            text.begin() + static_cast<std::ptrdiff_t>(end), '-');
  return secret;
}

/// The object's text with the secret as its last field. It does not grow in place: a string that
/// moves would leave a copy of the secret behind.
void append_secret(std::string& object, const Secret& secret) {
  const SecretText digits(to_hex(secret));
  object.reserve(object.size() + kSecretField.size() + digits.text().size() + 3);
  object.pop_back();
  object.append(",").append(kSecretField).append(digits.text()).append("\"}");
}

}  // namespace

Status write_secret_json(const std::string& path, const SecretJson& content) {
  SecretText line(content.fields.dump());
  append_secret(line.text(), content.secret);
  // Hosts that share the folder may have processes of the same number.
  const std::string fresh = path + "." + random_id() + ".new";
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return unavailable(fresh, errno);
  const ssize_t written = ::write(file.get(), line.text().data(), line.text().size());
  if (written != static_cast<ssize_t>(line.text().size()) ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(fresh.c_str());
    return unavailable(path, why);
  }
  return {};
}

Result<SecretJson> read_secret_json(const std::string& path) {
  SecretText text{std::string()};
  if (Status status = read_text(path, text); !status.ok()) return status;
  Result<Secret> secret = take_secret(text.text(), path);
  if (!secret.ok()) return secret.status();
  auto fields = nlohmann::json::parse(text.text(), nullptr, false);
  if (!fields.is_object()) return invalid(path, "is no JSON object");
  return SecretJson{std::move(fields), std::move(secret).value()};
}

}  // namespace elastic::rendezvous
