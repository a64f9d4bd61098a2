#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fault/effort.hpp"
#include "integration/job.hpp"
#include "rendezvous/etcd/etcd_options.hpp"
#include "tests/reserved_port.hpp"

namespace elastic::testing {

/// Real members of etcd on this machine, with their data in a folder. Killed at the end.
class EtcdCluster {
 public:
  /// Whether etcd is installed.
  static bool is_there();

  /// `options` are given to each member. With certificates in `tls` clients need TLS.
  EtcdCluster(const std::filesystem::path& folder, std::size_t members,
              const std::vector<std::string>& options = {}, etcd::EtcdOptions tls = {});

  /// For --store.
  std::string store() const;
  std::string address(std::size_t member) const { return members_.at(member)->client.address(); }
  pid_t pid(std::size_t member) const { return members_.at(member)->process->pid(); }
  void kill(std::size_t member);
  /// One request, which must succeed.
  nlohmann::json call(const std::string& path, const nlohmann::json& request) const;
  /// The value of a key and its revisions, as etcd says it.
  nlohmann::json entry(const std::string& key) const;
  /// Whether all members have found each other, within kLong.
  bool serves() const;
  std::string text() const;

 private:
  struct Member {
    ReservedPort client;
    ReservedPort peer;
    std::unique_ptr<Job> process;
  };
  etcd::EtcdOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace elastic::testing
