#include "rendezvous/etcd/etcd_job.hpp"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include "rendezvous/etcd/base64.hpp"

namespace elastic::etcd {

namespace asio = boost::asio;
using Json = nlohmann::json;

namespace {

const Status kOdd(Code::kProtocol, "etcd's answer lacks what was asked for");

/// The gateway writes 64-bit numbers as text, and leaves zeros out.
std::int64_t number(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return 0;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  return found->is_string() ? std::strtoll(found->get<std::string>().c_str(), nullptr, 10) : 0;
}

Json range(const std::string& key) {
  return {{"key", key}};
}

Json request_range(const std::string& key) {
  return {{"request_range", range(key)}};
}

/// A condition of a transaction: the key has this revision; 0: there is no such key.
Json compare(const std::string& key, bool created, std::int64_t revision) {
  return {{"key", key},
          {"result", "EQUAL"},
          {"target", created ? "CREATE" : "MOD"},
          {created ? "create_revision" : "mod_revision", std::to_string(revision)}};
}

Json the_lease(const Lease& lease) {
  return {{"ID", std::to_string(lease.id)}};
}

/// Puts a value where the conditions hold, and tells in any case what is there then.
Json put_if(const Json::array_t& conditions, const Json& put, const std::string& leader,
            const std::string& journal) {
  Json success = Json::array({{{"request_put", put}}});
  Json failure = Json::array();
  for (const std::string& key : {leader, journal}) {
    success.push_back(request_range(key));
    failure.push_back(request_range(key));
  }
  return {{"compare", conditions}, {"success", success}, {"failure", failure}};
}

/// Of a range of one key; nothing where there is no such key.
std::optional<Entry> entry(const Json& range) {
  const auto kvs = range.find("kvs");
  if (kvs == range.end() || !kvs->is_array() || kvs->empty()) return {};
  const Json& found = kvs->front();
  const std::string value = found.value("value", "");
  return Entry{from_base64(value).value_or(""), number(found, "create_revision"),
               number(found, "mod_revision"), number(found, "lease")};
}

/// The last two responses of a transaction are ranges of the leader's key and of the journal.
JobEntries job_entries(const Json& answer) {
  const Json& responses = answer.at("responses");
  const std::size_t count = responses.size();
  return {entry(responses.at(count - 2).at("response_range")),
          entry(responses.at(count - 1).at("response_range")).value_or(Entry{})};
}

}  // namespace

EtcdJob::EtcdJob(std::shared_ptr<EtcdClient> client, const std::string& job)
    : client_(std::move(client)),
      leader_(to_base64("elastic/" + job + "/leader")),
      journal_(to_base64("elastic/" + job + "/journal")) {}

asio::awaitable<Result<std::optional<Entry>>> EtcdJob::leader(TimePoint until) {
  const Result<Json> answer = co_await client_->call("/v3/kv/range", range(leader_), until);
  if (!answer.ok()) co_return answer.status();
  co_return entry(answer.value());
}

asio::awaitable<Result<Entry>> EtcdJob::journal(TimePoint until) {
  const Result<Json> answer = co_await client_->call("/v3/kv/range", range(journal_), until);
  if (!answer.ok()) co_return answer.status();
  co_return entry(answer.value()).value_or(Entry{});
}

asio::awaitable<Result<Lease>> EtcdJob::grant(Milliseconds length, TimePoint until) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(length);
  Json request;
  request["TTL"] = seconds.count();
  const Result<Json> answer = co_await client_->call("/v3/lease/grant", request, until);
  if (!answer.ok()) co_return answer.status();
  const Lease lease{number(answer.value(), "ID"),
                    std::chrono::seconds(number(answer.value(), "TTL"))};
  if (lease.id == 0 || lease.length.count() <= 0) co_return kOdd;
  co_return lease;
}

asio::awaitable<Result<Milliseconds>> EtcdJob::renew(Lease lease, TimePoint until) {
  const Result<Json> answer =
      co_await client_->call("/v3/lease/keepalive", the_lease(lease), until);
  if (!answer.ok()) co_return answer.status();
  co_return Milliseconds(std::chrono::seconds(number(answer.value(), "TTL")));
}

asio::awaitable<Status> EtcdJob::revoke(Lease lease, TimePoint until) {
  const Result<Json> answer = co_await client_->call("/v3/lease/revoke", the_lease(lease), until);
  co_return answer.status();
}

asio::awaitable<Result<JobEntries>> EtcdJob::campaign(Lease lease, std::string value,
                                                      TimePoint until) {
  Json put = range(leader_);
  put["value"] = to_base64(value);
  put["lease"] = std::to_string(lease.id);
  const Json transaction = put_if({compare(leader_, true, 0)}, put, leader_, journal_);
  const Result<Json> answer = co_await client_->call("/v3/kv/txn", transaction, until);
  if (!answer.ok()) co_return answer.status();
  try {
    co_return job_entries(answer.value());
  } catch (const Json::exception&) {
    co_return kOdd;
  }
}

asio::awaitable<Result<Entry>> EtcdJob::write(JobEntries held, std::string journal,
                                              TimePoint until) {
  const std::int64_t term = held.leader->created;
  Json put = range(journal_);
  put["value"] = to_base64(journal);
  const Json transaction =
      put_if({compare(leader_, true, term), compare(journal_, false, held.journal.modified)}, put,
             leader_, journal_);
  const Result<Json> answer = co_await client_->call("/v3/kv/txn", transaction, until);
  if (!answer.ok()) co_return answer.status();
  try {
    const JobEntries now = job_entries(answer.value());
    const bool leads = now.leader && now.leader->created == term;
    if (!leads) co_return Status(Code::kStopped, "another server may lead");
    // Where the answer to the same write was lost, this one failed and the journal is there.
    co_return now.journal;
  } catch (const Json::exception&) {
    co_return kOdd;
  }
}

}  // namespace elastic::etcd
