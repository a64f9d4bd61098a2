#include "rendezvous/server/requests_record.hpp"

#include <nlohmann/json.hpp>

namespace elastic::rendezvous {

namespace {

using Json = nlohmann::json;

Json to_json(const PendingRequests::Limit& limit) {
  return {{"host", limit.host}, {"slots", limit.slots}, {"replacements", limit.replacements},
          {"due", limit.due},   {"ends", limit.ends},   {"ends_given", limit.ends_given}};
}

PendingRequests::Limit limit_of(const Json& json) {
  return {json.at("host").get<std::string>(),          json.at("slots").get<int>(),
          json.at("replacements").get<std::int64_t>(), json.at("due").get<std::int64_t>(),
          json.at("ends").get<std::int64_t>(),         json.at("ends_given").get<bool>()};
}

}  // namespace

std::string requests_record(const PendingRequests& requests) {
  Json limits = Json::array();
  for (const auto& limit : requests.limits) limits.push_back(to_json(limit));
  const Json json{{"type", kRequestsType},
                  {"stop", requests.stop},
                  {"launched", requests.launched},
                  {"removals", requests.removals},
                  {"limits", std::move(limits)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<PendingRequests> parse_requests(std::string_view record) try {
  const Json json = Json::parse(record);
  PendingRequests requests{json.at("stop").get<bool>(),
                           json.at("launched").get<bool>(),
                           json.at("removals").get<std::vector<std::string>>(),
                           {}};
  for (const Json& limit : json.at("limits")) requests.limits.push_back(limit_of(limit));
  return requests;
} catch (const Json::exception&) {
  return std::nullopt;
}

}  // namespace elastic::rendezvous
