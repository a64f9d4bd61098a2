#include "standby/etcd_cluster.hpp"

#include <algorithm>
#include <cstdlib>
#include <signal.h>
#include <unistd.h>

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
                         const std::vector<std::string>& options, const std::string& scheme) {
  std::string all;
  for (std::size_t i = 0; i < members; ++i) {
    members_.push_back(std::make_unique<Member>());
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
  std::string addresses;
  for (const auto& member : members_) {
    addresses += (addresses.empty() ? "" : ",") + member->client.address();
  }
  return "etcd:" + addresses;
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
