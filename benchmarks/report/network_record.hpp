#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "elastic/diagnostics.hpp"
#include "elastic/options.hpp"

namespace elastic::bench {

/// For one interface: the number of packets that the cloud's network shaping has delayed or dropped
/// since the start of the instance, by the driver's name for the reason.
using Allowances = std::map<std::string, std::uint64_t>;

/// Selects the allowances from the counters of `ethtool -S`; `names[i]` belongs to `values[i]`.
/// EC2's driver (ena) has them: bw_in_allowance_exceeded and others.
Allowances allowances_of(const std::vector<std::string>& names,
                         const std::vector<std::uint64_t>& values);

/// The names of the interfaces for data connections: the interface with the address `bind_address`;
/// for a wildcard address, all that are up except loopback.
std::vector<std::string> interfaces_of(const std::string& bind_address);

/// A record of this host's network for reports: made before the measurement, written after it.
class NetworkRecord {
 public:
  /// `options`: the options in force.
  explicit NetworkRecord(const Options& options);
  /// With the options of the environment.
  NetworkRecord();

  /// Adds the number of flows that the measured job's links used; without it, the options' counts.
  void add(const Tuning& tuning);

  /// \returns an object with `flows_per_link` (the flows that carry data; null if unknown),
  /// `congestion_control` and `interfaces`. Each interface has `name`, `mtu` and, if there are any,
  /// `allowances`: each counter at the construction of this object and now.
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
