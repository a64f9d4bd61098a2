#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/model/fair_share.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/hosts.hpp"

namespace elastic::model {

/// The resources of a job on a network, and what each step needs of them.
///
/// A host has a line out, a line in, cores and memory; a rank has a thread, or several that share
/// what goes over TCP. Each of them cannot use more than one core. A line with a burst has credit,
/// as a token bucket has tokens.
class Fabric {
 public:
  enum class Kind : std::uint8_t { kLine, kThread, kCores, kMemory };
  struct Resource {
    Kind kind = Kind::kLine;
    double capacity = 1;
    double most_credit =
        0;  ///< that may be used beyond the capacity, and comes back while it is idle
    double with_credit = 0;  ///< capacity while there is credit
  };

  /// `walked_hosts`: one, if it stands for all, or all of them. `flows`: TCP connections of a link.
  Fabric(const Network& network, const plan::Hosts& hosts, int walked_hosts, int flows);

  const std::vector<Resource>& resources() const { return resources_; }
  /// The activity of a message from `from` to `to`; `reduces`: on its arrival.
  Activity message(int from, int to, bool inside_host, std::size_t bytes, bool reduces) const;
  Activity reduction(int rank, std::size_t bytes) const;
  Activity copy(int rank, std::size_t bytes) const;
  /// From the last byte of a message to the next step of its receiver. Where a machine has more
  /// ranks than cores, the receiver also waits for the turns of those before it.
  double latency(bool inside_host) const;

 private:
  enum Part : std::uint8_t { kOut, kIn, kCores, kMemory, kParts };

  std::int32_t of_host(int rank, Part part) const;
  std::int32_t threads(int rank) const;
  void use_processor(Activity& activity, int rank, bool owner, double per_byte) const;
  void use_memory(Activity& activity, int rank, double passes) const;

  Network network_;
  plan::Hosts hosts_;
  bool one_for_all_;
  int flows_;
  double threads_;  // of a rank
  std::vector<Resource> resources_;
};

}  // namespace elastic::model
