// The end of a worker's data, while others go on.
#include <memory>

#include "base/in_callback.hpp"
#include "coordinator/work_state.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_clock.hpp"

namespace elastic {

JoinOutcome Context::Impl::join() {
  refuse_in_callback("join");
  (void)members();
  const runtime::Blocked blocked;
  flush();
  finish_groups();
  const auto last = std::make_shared<int>(-1);
  const auto state = runtime::value_or_throw(coordinator().join(last, [this] {
    joins_.fetch_add(1);
    return Status();
  }));
  state->wait();
  Contributors contributors = runtime::value_or_throw(state->outcome());
  return {*last, std::move(contributors)};
}

JoinOutcome Context::join() {
  return impl_->join();
}

}  // namespace elastic
