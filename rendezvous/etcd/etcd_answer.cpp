#include "rendezvous/etcd/etcd_answer.hpp"

#include <cstddef>

#include <nlohmann/json.hpp>

namespace elastic::etcd {

namespace {

using Json = nlohmann::json;

/// gRPC's codes, which the gateway passes on.
enum GrpcCode {
  kInvalid = 3,
  kPermissionDenied = 7,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kUnauthenticated = 16,
};

constexpr int kOk = 200;
/// Of a foreign answer, shown.
constexpr std::size_t kMostShown = 80;

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

Status failure(int code, const std::string& text) {
  const auto refused = [&](const char* remedy) {
    return Status(Code::kRefused, text + "; " + remedy);
  };
  if (says(text, "invalid user ID or password")) {
    return Status(Code::kInvalidArgument,
                  text + "; check --store-user and the password in --store-password-file");
  }
  if (says(text, "user name is empty")) {
    return refused("give --store-user and --store-password-file");
  }
  if (says(text, "authentication is not enabled")) {
    return refused("leave out --store-user, or enable authentication (etcdctl auth enable)");
  }
  if (code == kUnauthenticated || says(text, "revision of auth store is old")) {
    return Status(Code::kAborted, text);
  }
  if (code == kPermissionDenied) {
    return refused("grant the user's role reading and writing of the keys under elastic/JOB/");
  }
  // By the gateway, or by the member behind it.
  if (says(text, "larger than max") || says(text, "request is too large")) {
    return Status(Code::kInternal, text + "; etcd takes more with --max-request-bytes");
  }
  switch (code) {
    case kInvalid:
    case kOutOfRange:
    case kUnimplemented:
      return Status(Code::kInternal, text);
    default:
      // Most pass: etcd has many texts, and as many codes, for "I have no leader just now".
      return Status(Code::kUnavailable, text);
  }
}

Status foreign(const HttpAnswer& answer) {
  std::string shown = answer.body.substr(0, kMostShown);
  while (!shown.empty() && shown.back() == '\n') shown.pop_back();
  return Status(Code::kProtocol, "what answers is not etcd's JSON gateway: HTTP status " +
                                     std::to_string(answer.status) + ", '" + shown +
                                     "'; give the addresses of etcd's client URLs, and --store-ca "
                                     "where these are https");
}

}  // namespace

Result<Json> read_answer(const HttpAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!json.is_object()) return foreign(answer);
  // A stream's answers, such as a lease's renewal, have one more object around them.
  const Json& inner = json.contains("result") ? json["result"] : json;
  const auto error = inner.find("error");
  if (error == inner.end()) {
    if (answer.status != kOk || !inner.is_object()) return foreign(answer);
    return inner;
  }
  const Json& told = error->is_object() ? *error : inner;
  const char* const code = error->is_object() ? "grpc_code" : "code";
  const char* const text = error->is_object() ? "message" : "error";
  if (!told.contains(code) || !told[code].is_number_integer() || !told.contains(text) ||
      !told[text].is_string()) {
    return foreign(answer);
  }
  return failure(told[code].get<int>(), told[text].get<std::string>());
}

}  // namespace elastic::etcd
