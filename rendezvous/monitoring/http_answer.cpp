#include "rendezvous/monitoring/http_answer.hpp"

#include <utility>

#include "rendezvous/monitoring/metrics_text.hpp"
#include "rendezvous/monitoring/status_json.hpp"
#include "rendezvous/monitoring/status_page.hpp"

namespace elastic::monitoring {

namespace {

constexpr Milliseconds kFresh{250};

HttpAnswer refusal(unsigned status, std::string text) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = std::make_shared<const std::string>(std::move(text));
  return answer;
}

}  // namespace

HttpAnswer bad_request() {
  return refusal(400, "this is no request of HTTP, or its header is too long\n");
}

HttpAnswer foreign_name() {
  return refusal(403, "at loopback a job is shown as 127.0.0.1, [::1] or localhost only\n");
}

bool is_local_name(const std::string& host) {
  if (host.empty() || host.front() == '[') return true;
  const std::string name = host.substr(0, host.find(':'));
  return name == "localhost" || name.find_first_not_of("0123456789.") == std::string::npos;
}

Documents::Documents(std::function<rendezvous::StatusReply()> status) {
  documents_["/"] = {"text/html; charset=utf-8", [] { return std::string(kStatusPage); }, {}, {}};
  documents_["/metrics"] = {"text/plain; version=0.0.4; charset=utf-8",
                            [status] { return metrics_text(status()); },
                            {},
                            {}};
  documents_["/status.json"] = {
      "application/json", [status] { return status_json(status()); }, {}, {}};
}

HttpAnswer Documents::answer(const std::string& method, const std::string& target, TimePoint now) {
  if (method != "GET" && method != "HEAD") {
    return refusal(405, "a job is looked at here, by GET and HEAD; elasticrun ctl changes it\n");
  }
  const auto found = documents_.find(target.substr(0, target.find('?')));
  if (found == documents_.end()) {
    return refusal(404, "there are /, /metrics and /status.json here\n");
  }
  Document& document = found->second;
  if (!document.text || now >= document.made + kFresh) {
    document.text = std::make_shared<const std::string>(document.make());
    document.made = now;
  }
  return {200, document.type, document.text};
}

}  // namespace elastic::monitoring
