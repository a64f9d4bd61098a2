#include "rendezvous/server/leader_entry.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hmac.hpp"

namespace elastic::rendezvous {

std::string text_of(const LeaderEntry& entry) {
  return nlohmann::json{{"address", entry.address}, {"secret", entry.fingerprint}}.dump();
}

LeaderEntry parse_leader_entry(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  const auto field = [&json](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  return {field("address"), field("secret")};
}

Result<std::string> secret_fingerprint(const Secret& secret) {
  constexpr std::string_view kText = "elastic: servers of one job";
  const auto mac = hmac_sha256(secret.bytes(), std::as_bytes(std::span(kText)));
  if (!mac.ok()) return mac.status();
  std::string digits;
  for (const std::byte byte : mac.value()) {
    digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return digits;
}

}  // namespace elastic::rendezvous
