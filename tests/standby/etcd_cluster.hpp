#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fault/effort.hpp"
#include "integration/job.hpp"
#include "tests/reserved_port.hpp"

namespace elastic::testing {

/// Real members of etcd on this machine, with their data in a folder. Killed at the end.
class EtcdCluster {
 public:
  /// Whether etcd is installed.
  static bool is_there();

  /// `options` are given to each member; `scheme` is of the addresses for clients.
  EtcdCluster(const std::filesystem::path& folder, std::size_t members,
              const std::vector<std::string>& options = {}, const std::string& scheme = "http");

  /// For --store.
  std::string store() const;
  std::string address(std::size_t member) const { return members_.at(member)->client.address(); }
  pid_t pid(std::size_t member) const { return members_.at(member)->process->pid(); }
  void kill(std::size_t member);
  /// Whether all members have found each other, within kLong.
  bool serves() const;
  std::string text() const;

 private:
  struct Member {
    ReservedPort client;
    ReservedPort peer;
    std::unique_ptr<Job> process;
  };
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace elastic::testing
