#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/secret.hpp"
#include "base/status.hpp"

namespace elastic::rendezvous {

/// A file of one JSON object in which a secret is, too.
struct SecretJson {
  nlohmann::json fields;  ///< without the secret, which is kept apart from what a parser copies
  Secret secret{};
};

/// Writes the object with mode 0600, such that readers see all of it or nothing. A file at `path`
/// is replaced, and written to through no link. kUnavailable names the file.
Status write_secret_json(const std::string& path, const SecretJson& content);

/// kUnavailable: there is no such file. kInvalidArgument: it belongs to another user, others can
/// read it, or it holds something else; the message names it.
Result<SecretJson> read_secret_json(const std::string& path);

}  // namespace elastic::rendezvous
