#include "rendezvous/etcd/etcd_client.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <openssl/err.h>
#include <openssl/x509err.h>

#include "rendezvous/etcd/etcd_answer.hpp"
#include "rendezvous/etcd/http_post.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::etcd {

namespace asio = boost::asio;
using Json = nlohmann::json;

namespace {

/// For one member: a lease of some seconds has to outlast some silent ones.
constexpr Milliseconds kAttempt{1000};
/// Before all are asked again.
constexpr Milliseconds kPause{100};

asio::awaitable<void> pause() {
  asio::steady_timer timer(co_await asio::this_coro::executor, kPause);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

std::string joined(const std::vector<std::string>& failures) {
  std::string text;
  for (const std::string& failure : failures) {
    if (!failure.empty()) text += (text.empty() ? "" : "; ") + failure;
  }
  return text;
}

}  // namespace

EtcdClient::EtcdClient(EtcdOptions options) : options_(std::move(options)) {}

Result<std::shared_ptr<EtcdClient>> EtcdClient::create(EtcdOptions options) {
  const std::shared_ptr<EtcdClient> client(new EtcdClient(std::move(options)));
  if (Status loaded = client->load_certificates(); !loaded.ok()) return loaded;
  return client;
}

Status EtcdClient::load_certificates() {
  if (options_.ca.empty()) return {};
  tls_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  boost::system::error_code error;
  tls_->set_verify_mode(asio::ssl::verify_peer, error);
  const auto wrong = [&error](const char* option, const std::string& file,
                              const char* remedy = "it must be a PEM file") {
    return Status(Code::kInvalidArgument, std::string(option) + ": cannot use " + file + ": " +
                                              error.message() + "; " + remedy);
  };
  tls_->load_verify_file(options_.ca, error);
  if (error) return wrong("--store-ca", options_.ca);
  if (options_.certificate.empty()) return {};
  tls_->use_certificate_chain_file(options_.certificate, error);
  if (error) return wrong("--store-cert", options_.certificate);
  tls_->use_private_key_file(options_.key, asio::ssl::context::pem, error);
  if (!error) return {};
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH) {
    return wrong("--store-key", options_.key, "it must be the key of --store-cert");
  }
  return wrong("--store-key", options_.key);
}

asio::awaitable<Result<Json>> EtcdClient::call(std::string path, Json request, TimePoint until) {
  const std::string body = request.dump();
  const std::vector<std::string>& members = options_.members;
  std::vector<std::string> failures(members.size());
  Code last = Code::kUnavailable;
  while (true) {
    const std::size_t first = current_;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t which = (first + i) % members.size();
      const TimePoint now = Clock::now();
      if (now >= until) break;
      Result<Json> answer =
          co_await ask(members[which], path, body, std::min(until, now + kAttempt));
      if (answer.ok()) {
        current_ = which;
        co_return answer;
      }
      const Status failed = answer.status().within("etcd at " + members[which]);
      last = failed.code();
      // Another member may be there where this one, or what is in front of it, is not.
      if (last != Code::kUnavailable && last != Code::kProtocol) co_return failed;
      failures[which] = failed.message();
    }
    if (Clock::now() + kPause >= until) co_return Status(last, joined(failures));
    co_await pause();
  }
}

/// One member. A token that holds no more is replaced once.
asio::awaitable<Result<Json>> EtcdClient::ask(std::string member, std::string path,
                                              std::string body, TimePoint until) {
  for (bool again = true;; again = false) {
    if (!options_.user.empty() && token_.empty()) {
      if (Status status = co_await authenticate(member, until); !status.ok()) co_return status;
    }
    Result<Json> answer = co_await post(member, path, body, until);
    if (answer.status().code() != Code::kAborted) co_return answer;
    token_.clear();
    if (!again) co_return Status(Code::kUnavailable, answer.status().message());
  }
}

asio::awaitable<Status> EtcdClient::authenticate(std::string member, TimePoint until) {
  SecretText body(Json{{"name", options_.user}, {"password", options_.password->text()}}.dump());
  const Result<Json> answer = co_await post(member, "/v3/auth/authenticate", body.text(), until);
  if (!answer.ok()) co_return answer.status();
  const auto token = answer.value().find("token");
  if (token == answer.value().end() || !token->is_string()) {
    co_return Status(Code::kProtocol, "its answer has no token");
  }
  token_ = token->get<std::string>();
  co_return Status();
}

asio::awaitable<Result<Json>> EtcdClient::post(std::string member, std::string path,
                                               std::string body, TimePoint until) {
  const Result<rendezvous::HostPort> to = rendezvous::parse_address(member);
  if (!to.ok()) co_return to.status();
  const auto limit = std::chrono::ceil<Milliseconds>(until - Clock::now());
  if (limit.count() <= 0) co_return Status(Code::kUnavailable, "does not answer");
  // Not in the call: GCC 12 destroys an aggregate in a co_await expression twice.
  HttpPost request{to.value(), std::move(path), std::move(body), token_};
  const Result<HttpAnswer> answer = co_await http_post(std::move(request), tls_.get(), limit);
  if (!answer.ok()) co_return answer.status();
  co_return read_answer(answer.value());
}

}  // namespace elastic::etcd
