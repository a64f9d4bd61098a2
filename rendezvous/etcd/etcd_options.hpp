#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/secret.hpp"
#include "base/status.hpp"

namespace elastic::etcd {

/// How etcd is reached.
struct EtcdOptions {
  std::vector<std::string> members;  ///< "host:port" of each, for clients
  std::string ca;                    ///< certificates to trust, PEM; empty: no TLS
  std::string certificate;           ///< this client's own, PEM; empty: none
  std::string key;                   ///< of `certificate`
  std::string user;                  ///< empty: etcd asks for none
  std::shared_ptr<const SecretText> password = {};
};

/// The members of "etcd:HOST:PORT,HOST:PORT,...". kInvalidArgument says what else it is.
Result<std::vector<std::string>> parse_store(const std::string& store);

/// A password from the first line of a file that no other user can read. kInvalidArgument names the
/// file and what is wrong with it.
Result<std::shared_ptr<const SecretText>> read_password_file(const std::string& path);

}  // namespace elastic::etcd
