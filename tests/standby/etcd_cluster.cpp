#include "standby/etcd_cluster.hpp"

#include <algorithm>
#include <exception>
#include <signal.h>
#include <stdexcept>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "rendezvous/etcd/base64.hpp"
#include "rendezvous/etcd/etcd_client.hpp"

namespace elastic::testing {

namespace {

/// The last line of the log when a member takes requests.
constexpr const char* kReady = "ready to serve client requests";

std::string name(std::size_t member) {
  return "member" + std::to_string(member);
}

}  // namespace

bool EtcdCluster::is_there() {
  return std::filesystem::exists("/usr/bin/etcd");
}

EtcdCluster::EtcdCluster(const std::filesystem::path& folder, std::size_t members,
                         const std::vector<std::string>& options, etcd::EtcdOptions tls)
    : options_(std::move(tls)) {
  const std::string scheme = options_.ca.empty() ? "http" : "https";
  std::string all;
  for (std::size_t i = 0; i < members; ++i) {
    members_.push_back(std::make_unique<Member>());
    options_.members.push_back(members_.back()->client.address());
    all += (all.empty() ? "" : ",") + name(i) + "=http://" + members_.back()->peer.address();
  }
  for (std::size_t i = 0; i < members; ++i) {
    const std::string client = scheme + "://" + members_[i]->client.address();
    const std::string peer = "http://" + members_[i]->peer.address();
    std::vector<std::string> command{"/usr/bin/etcd",
                                     "--name=" + name(i),
                                     "--data-dir=" + (folder / name(i)).string(),
                                     "--listen-client-urls=" + client,
                                     "--advertise-client-urls=" + client,
                                     "--listen-peer-urls=" + peer,
                                     "--initial-advertise-peer-urls=" + peer,
                                     "--initial-cluster=" + all,
                                     "--heartbeat-interval=50",
                                     "--election-timeout=500"};
    command.insert(command.end(), options.begin(), options.end());
    members_[i]->process = std::make_unique<Job>(command, folder / (name(i) + ".log"));
  }
}

std::string EtcdCluster::store() const {
  std::string list;
  for (const std::string& member : options_.members) list += (list.empty() ? "" : ",") + member;
  return "etcd:" + list;
}

nlohmann::json EtcdCluster::call(const std::string& path, const nlohmann::json& request) const {
  const auto client = etcd::EtcdClient::create(options_).value();
  nlohmann::json answer;
  const auto ask = [&]() -> boost::asio::awaitable<void> {
    const auto got = co_await client->call(path, request, Clock::now() + kLong);
    if (!got.ok()) throw std::runtime_error(path + ": " + got.status().message());
    answer = got.value();
  };
  boost::asio::io_context io(1);
  boost::asio::co_spawn(io, ask, [](std::exception_ptr thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  io.run();
  return answer;
}

nlohmann::json EtcdCluster::entry(const std::string& key) const {
  return call("/v3/kv/range", {{"key", etcd::to_base64(key)}}).at("kvs").at(0);
}

void EtcdCluster::kill(std::size_t member) {
  ::kill(pid(member), SIGKILL);
  members_.at(member)->process->wait(kLong);
}

bool EtcdCluster::serves() const {
  return eventually(kLong, [&] {
    return std::all_of(members_.begin(), members_.end(), [](const auto& member) {
      return member->process->output().find(kReady) != std::string::npos;
    });
  });
}

std::string EtcdCluster::text() const {
  std::string result;
  for (const auto& member : members_) result += member->process->output();
  return result;
}

}  // namespace elastic::testing
