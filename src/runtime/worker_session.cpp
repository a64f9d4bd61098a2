#include "runtime/worker_session.hpp"

#include <utility>

#include "runtime/raise.hpp"

namespace elastic::runtime {

WorkerSession::WorkerSession(Identity identity, const Options& options, const Backends& backends,
                             const StepClock& step_clock,
                             std::shared_ptr<const transport::Arena> arena,
                             timeline::Timeline& timeline)
    : control_(std::move(identity), options, backends, step_clock, std::move(arena), timeline) {
  raise_if(control_.start());
  coordinator::Coordinator::Options named;
  named.bucket_bytes = options.bucket_bytes;
  named.tunes_buckets = options.autotune;
  named.view_timeout = options.view_timeout;
  named.leave_without_result = [this](const Status& why) { return leave_without_result(why); };
  named.timeline = &timeline;
  coordinator_.emplace(control_.lane(kNamedLane), std::move(named));
  raise_if(coordinator_->status());
  control_.calls_under_way().set_first_call([this] { return coordinator_->first_call(); });
}

WorkerSession::~WorkerSession() {
  control_.calls_under_way().set_first_call({});
}

Status WorkerSession::leave_without_result(const Status& why) {
  const Status reason = why.within(
      "this worker has left the job, as it cannot bring the result of a collective to its tensors; "
      "end it, and it can join again");
  control_.leave_with_error(reason);
  return reason;
}

}  // namespace elastic::runtime
