#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace elastic::hosts {

/// A machine that workers may run on.
struct Host {
  std::string name;  ///< as ssh takes it: a name or an address, with "user@" in front or without
  int slots = 1;     ///< workers that it takes
  int named = 1;     ///< how often the list names it

  bool operator==(const Host&) const = default;
};
using HostList = std::vector<Host>;  ///< each name once

/// "a:2,b:2". A host without a number has `usual_slots`. Names that come twice have the sum, as
/// with Open MPI. kInvalidArgument names what cannot be read, and `source`.
Result<HostList> parse_host_list(std::string_view text, int usual_slots, const std::string& source);

/// One host per line, as in the host files of Open MPI and Horovod: "a slots=2", "a:2", "a"; '#'
/// begins a comment. kInvalidArgument names `source` and the line.
Result<HostList> parse_host_lines(std::string_view text, int usual_slots,
                                  const std::string& source);

int total_slots(const HostList& hosts);

/// A line for each host that is named more than once: that may be a slip.
std::vector<std::string> repeated_names(const HostList& hosts);

/// Whether workers are spread over hosts, or fill one host after the other.
enum class Placement { kSpread, kPack };

/// How many of `workers` each host begins with: no more than its slots, so fewer may find a place.
std::vector<int> place(const HostList& hosts, int workers, Placement placement);

}  // namespace elastic::hosts
