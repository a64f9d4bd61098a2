#include "rendezvous/membership/layout.hpp"

#include <algorithm>

namespace elastic::rendezvous {
namespace {

std::string shape(const LayoutEntry& entry) {
  return entry.count == 0 ? entry.type : entry.type + " x " + std::to_string(entry.count);
}

}  // namespace

std::string layout_difference(const Layout& job, const Layout& worker) {
  const std::size_t common = std::min(job.size(), worker.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (job[i] == worker[i]) continue;
    if (job[i].name != worker[i].name) {
      return "state entry " + std::to_string(i) + ": the job has '" + job[i].name +
             "', this worker '" + worker[i].name + "'";
    }
    return "state entry '" + job[i].name + "': the job has " + shape(job[i]) + ", this worker " +
           shape(worker[i]);
  }
  if (job.size() > common) {
    return "state entry '" + job[common].name + "': the job has " + shape(job[common]) +
           ", this worker does not have it";
  }
  if (worker.size() > common) {
    return "state entry '" + worker[common].name + "': the job does not have it, this worker has " +
           shape(worker[common]);
  }
  return "";
}

}  // namespace elastic::rendezvous
