#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "elastic/options.hpp"
#include "elastic/tuning.hpp"

namespace elastic::bench {

/// Of an interface: packets that the cloud's network shaping has delayed or dropped since the
/// instance was started, by the driver's name for the reason.
using Allowances = std::map<std::string, std::uint64_t>;

/// Those among the counters of `ethtool -S`; names and values go together. EC2's driver (ena) has
/// them: bw_in_allowance_exceeded and others.
Allowances allowances_of(const std::vector<std::string>& names,
                         const std::vector<std::uint64_t>& values);

/// Names of the interfaces that data connections may go over: the one with the address that they
/// are accepted on, or all that are up, but for loopback, where that is a wildcard.
std::vector<std::string> interfaces_of(const std::string& bind_address);

/// What this host's network is like, for reports: made before the measurement, written after it.
class NetworkRecord {
 public:
  /// `options`: as they are in force.
  explicit NetworkRecord(const Options& options);
  /// With those of the environment.
  NetworkRecord();

  /// How the measured job's links were made. Before it, only what the options say is known.
  void add(const Tuning& tuning);

  /// `flows_per_link`, those that carry data (null where nobody has said), `congestion_control`,
  /// and `interfaces` with `name`, `mtu` and, where there are any, `allowances`: how much each was
  /// when this object was made, and is now.
  nlohmann::ordered_json to_json() const;

 private:
  struct Interface {
    std::string name;
    Allowances before;
  };
  std::optional<int> flows_per_link_;
  std::vector<Interface> interfaces_;
};

}  // namespace elastic::bench
