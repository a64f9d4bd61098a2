#include "rendezvous/etcd/etcd_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <unistd.h>

#include "base/unique_fd.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::etcd {

namespace {

constexpr std::string_view kScheme = "etcd:";
constexpr std::size_t kMostPasswordBytes = 4096;

}  // namespace

Result<std::vector<std::string>> parse_store(const std::string& store) {
  if (!store.starts_with(kScheme)) {
    return Status(Code::kInvalidArgument,
                  "--store '" + store + "' must be etcd:HOST:PORT,HOST:PORT,...");
  }
  auto members = rendezvous::parse_addresses(store.substr(kScheme.size()));
  if (!members.ok()) {
    return Status(Code::kInvalidArgument, "--store: " + members.status().message() +
                                              "; the store is etcd:HOST:PORT,HOST:PORT,...");
  }
  return members;
}

Result<std::shared_ptr<const SecretText>> read_password_file(const std::string& path) {
  const Result<UniqueFd> file = open_secret_file(path, "password");
  if (!file.ok()) return file.status();
  const auto password = std::make_shared<SecretText>(std::string(kMostPasswordBytes, '\0'));
  std::string& text = password->text();
  const ssize_t length = ::read(file.value().get(), text.data(), text.size());
  if (length < 0) {
    return Status(Code::kInvalidArgument,
                  "cannot read the password file " + path + ": " + std::strerror(errno));
  }
  text.resize(static_cast<std::size_t>(length));
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.empty()) {
    return Status(Code::kInvalidArgument,
                  "the password file " + path + " is empty; its first line is the password");
  }
  return std::shared_ptr<const SecretText>(password);
}

}  // namespace elastic::etcd
