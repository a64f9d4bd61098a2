#include "elastic/context.hpp"

#include <cstdint>
#include <memory>
#include <utility>

#include "base/config/environment.hpp"
#include "base/config/options.hpp"
#include "base/host_identity.hpp"
#include "base/in_callback.hpp"
#include "base/log.hpp"
#include "base/openssl_check.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/flight_log.hpp"
#include "runtime/groups.hpp"
#include "runtime/join_job.hpp"
#include "runtime/raise.hpp"

namespace elastic {

Context::Impl::Impl(Options options)
    : options_(runtime::value_or_throw(resolve(std::move(options), read_environment()))) {
  log::set_level(options_.log_level);
  runtime::raise_if(check_openssl(options_.encrypt));
  if (auto arena = transport::Arena::create(); arena.ok()) {
    arena_ = std::move(arena).value();
  } else {
    no_arena_ = arena.status();  // needed by `allocate` only
  }
  backends_ =
      runtime::value_or_throw(runtime::Backends::load(options_, read_environment(), arena_));
  runtime::Identity identity =
      runtime::value_or_throw(runtime::find_job(options_, read_environment()));
  runtime::raise_if(backends_.start(runtime::kLanes, identity.under_mpirun));
  if (!options_.flight_recorder.empty()) {
    runtime::raise_if(runtime::make_flight_folder(options_.flight_recorder));
  }
  // Before this worker is a member, so that a wrong path costs the others nothing.
  if (!options_.timeline.empty()) start_timeline(options_.timeline, identity);
  become(std::move(identity));
}

void Context::Impl::start_timeline(const std::string& path, const runtime::Identity& identity) {
  runtime::raise_if(timeline::check_timeline_path(path));
  timeline::TraceFile file;
  file.path = timeline::path_of_worker(path, identity.id);
  file.facts.job = identity.job;
  file.facts.host = host_name();
  file.facts.label = options_.label;
  file.facts.worker = identity.id;
  file.facts.tuning = [this] { return backends_.tuning(); };
  runtime::raise_if(timeline_.start(file));
}

Context::Impl::~Impl() {
  leave_at_once();
}

void Context::Impl::leave_at_once() {
  control().leave_at_once(running_
                              ? "its process exited inside elastic::run, without elastic::shutdown"
                              : unfinished());
  control().close();
  queue_.stop();
  stop_groups();
  timeline_.stop();
}

/// A worker that is stopped before it has joined is given up as well, and tries again.
void Context::Impl::become(runtime::Identity identity) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    try {
      sessions_.push_back(std::make_unique<runtime::WorkerSession>(identity, options_, backends_,
                                                                   step_clock_, arena_, timeline_));
      present_.store(sessions_.back().get());
      return;
    } catch (const Error& error) {
      const bool is_out = error.code() == ErrorCode::kEvicted;
      if (!is_out || !options_.rejoin || attempt == kAttempts) throw;
      log::warn("joins again: {}", error.what());
    }
    runtime::draw_incarnation(identity);
  }
}

void Context::Impl::shutdown() {
  refuse_in_callback("elastic::shutdown");
  if (running_) {
    throw Error(ErrorCode::kInvalidArgument,
                "elastic::shutdown was called inside elastic::run; return from its body first");
  }
  const std::string why_unfinished = unfinished();
  if (why_unfinished.empty()) {
    coordinator().flush();
    finish_queued();
    coordinator().drain();
  }
  control().leave(why_unfinished);
  control().close();
  queue_.stop();
  stop_groups();
  timeline_.stop();
}

std::shared_ptr<const coordinator::Members> Context::Impl::members() const {
  const auto present = view();
  if (!present) {
    throw Error(ErrorCode::kNotInitialized,
                "this worker is joining a running job: collectives are for members; enter "
                "elastic::run first");
  }
  return present->members;
}

std::shared_ptr<const runtime::ViewSummary> Context::Impl::show_view() {
  auto present = view();
  if (!present) return present;
  const std::uint64_t generation = present->members->generation;
  if (seen_generation_.load(std::memory_order_relaxed) != generation) {
    const MutexLock lock(mutex_);
    seen_ = present->members->contributors();
    seen_generation_.store(generation, std::memory_order_relaxed);
  }
  return present;
}

Contributors Context::Impl::seen() const {
  {
    const MutexLock lock(mutex_);
    if (seen_.size() > 0) return seen_;
  }
  return members()->contributors();
}

Allocation Context::Impl::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  runtime::raise_if(no_arena_);
  std::byte* const memory = runtime::value_or_throw(arena_->allocate(bytes));
  return {std::shared_ptr<std::byte>(
              memory, [arena = arena_, bytes](std::byte* its) { arena->free(its, bytes); }),
          bytes};
}

Context::Context(Options options)
    : impl_(std::make_unique<Impl>(std::move(options))), groups_(std::make_shared<Groups>()) {
  impl_->set_groups(groups_);
}
/// Ends calls that the queue's thread makes on this object before the object ends.
Context::~Context() {
  if (impl_.is_ours()) end();
}

void Context::shutdown() {
  impl_->shutdown();
}
void Context::end() {
  impl_.end([](Impl& impl) { impl.leave_at_once(); });
}

int Context::rank() const {
  const auto view = impl_->show_view();
  return view ? view->members->rank : -1;
}
int Context::size() const {
  const auto view = impl_->show_view();
  return view ? view->members->size() : 0;
}
int Context::local_rank() const {
  const auto view = impl_->view();
  return view ? view->local_rank : impl_->control().identity().local_rank;
}
int Context::local_size() const {
  const auto view = impl_->view();
  return view ? view->local_size : 0;
}
std::uint64_t Context::generation() const {
  const auto view = impl_->show_view();
  return view ? view->members->generation : 0;
}
WorkerId Context::id() const {
  return impl_->control().identity().id;
}
Contributors Context::members() const {
  const auto view = impl_->show_view();
  return view ? view->members->contributors() : Contributors();
}
Tuning Context::tuning() const {
  return impl_->control().tuning();
}
const Options& Context::options() const {
  return impl_->options();
}
StepTimes Context::step_times() const {
  return impl_->step_clock().times();
}
ViewChange Context::last_view_change() const {
  return impl_->control().view_changes().latest();
}
void Context::start_timeline(const std::string& path) {
  impl_->start_timeline(path, impl_->control().identity());
}
void Context::stop_timeline() {
  impl_->timeline().stop();
}
std::string Context::timeline_file() const {
  return impl_->timeline().path();
}
ResizePolicy Context::resize_policy() const {
  return impl_->options().resize_policy;
}
Compression Context::compression() const {
  return find_compression(impl_->options().compression).value();
}

Allocation Context::allocate(std::size_t bytes) {
  return impl_->allocate(bytes);
}

}  // namespace elastic
