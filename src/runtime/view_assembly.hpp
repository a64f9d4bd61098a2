#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_fd.hpp"
#include "base/status.hpp"
#include "collectives/transport/linker.hpp"
#include "coordinator/lane_view.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "runtime/backends.hpp"
#include "runtime/identity.hpp"
#include "runtime/membership_status.hpp"
#include "runtime/view_links.hpp"

namespace elastic::runtime {

/// The events that interrupt a lane's wait for its links, in all views; see transport::Mesh.
using AbortEvents = std::array<std::shared_ptr<EventFd>, kLanes>;

/// Converts the types of the rendezvous to those of the data plane. Pure, except for the backends
/// made.

transport::LinkerOptions linker_options(const Identity& identity, const Options& options,
                                        std::shared_ptr<const transport::Arena> arena);
rendezvous::StallLimits stall_limits(const Options& options);
/// The error of this worker's calls after `fail`.
Status failure_of(const rendezvous::Fail& fail);

rendezvous::Endpoints to_rendezvous(const transport::Endpoints& endpoints);

ViewSummary summarise(const rendezvous::View& view, const std::string& self);

/// The source of the links that a lane of the view lacks.
using LinkSources = std::function<std::shared_ptr<transport::LinkSource>(
    const std::vector<std::string>& incarnations, std::size_t lane, std::uint64_t generation)>;

/// The parts of LaneViews that are the same for all views of a worker.
struct LaneParts {
  const AbortEvents& abort_events;  ///< no thread may be waiting for them
  const Backends& backends;
  LinkSources sources;
  int all_linked = 0;   ///< up to how many members all are linked with each other from the start
  int tcp_threads = 0;  ///< Options::tcp_threads
};

/// Makes one LaneView per lane. `links` is in the order of `peers_of`. Fails as Backends::make
/// does.
Result<std::vector<std::shared_ptr<coordinator::LaneView>>> assemble(
    const rendezvous::View& view, const std::shared_ptr<const coordinator::Members>& members,
    const std::vector<transport::Linker::LinksOfPeer>& links, const LaneParts& parts);

/// The id under which an incarnation appears in Contributors.
WorkerId worker_id(const std::string& incarnation);

}  // namespace elastic::runtime
