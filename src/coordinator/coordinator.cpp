#include "coordinator/coordinator.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/counted.hpp"
#include "base/join_name.hpp"
#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/mesh.hpp"
#include "coordinator/group_names.hpp"
#include "coordinator/ordered_operation.hpp"

namespace elastic::coordinator {

static_assert(NoteWriter::kMaxNoteBytes <= transport::Link::kMaxNoteBytes);

namespace {

/// After this time without progress open buckets are closed. Otherwise a program whose ranks wait
/// for each other outside of the library would keep them open forever.
constexpr Milliseconds kForceFlush{1000};

TensorRequest request_for(const std::string& name, const std::vector<TensorView>& tensors,
                          ReduceOp op, Scale scale) {
  TensorRequest request;
  request.name = name;
  request.op = op;
  request.scale = scale;
  for (const TensorView& tensor : tensors) request.tensors.push_back({tensor.dtype, tensor.count});
  return request;
}

}  // namespace

Coordinator::Coordinator(Lane& lane, const Options& options)
    : lane_(lane), options_(options), negotiator_(options.bucket_bytes) {
  if (options.tunes_buckets) tuning_.emplace(options.bucket_bytes);
  if (status().ok()) thread_ = std::thread([this] { loop(); });
}

Coordinator::~Coordinator() {
  if (!thread_.joinable()) return;
  wake_up_->set();
  thread_.join();
  landings_.wait();
}

Result<std::shared_ptr<detail::WorkState>> Coordinator::submit(
    std::string name, std::vector<TensorView> tensors, ReduceOp op,
    const std::shared_ptr<device::StagedTensors>& staged, Scale scale) {
  NamedCall call{.request = request_for(name, tensors, op, scale), .make = {}};
  call.request.on_device = staged && staged->when() == device::Fetch::kOnDemand;
  Submission submission{.call = std::move(call), .tensors = std::move(tensors)};
  submission.staged = staged;
  return submit(std::move(submission));
}

Result<std::shared_ptr<detail::WorkState>> Coordinator::submit(std::string name,
                                                               std::vector<ConstTensorView> inputs,
                                                               std::vector<TensorView> outputs,
                                                               ReduceOp op) {
  NamedCall call{.request = request_for(name, outputs, op, Scale(1, 1)), .make = {}};
  Submission submission{.call = std::move(call), .tensors = std::move(outputs)};
  submission.inputs = std::move(inputs);
  return submit(std::move(submission));
}

Result<std::shared_ptr<detail::WorkState>> Coordinator::submit(
    NamedCall call, const std::shared_ptr<device::StagedTensors>& staged) {
  Submission submission{.call = std::move(call), .tensors = {}};
  submission.staged = staged;
  return submit(std::move(submission));
}

Result<std::shared_ptr<detail::WorkState>> Coordinator::submit(Submission submission) {
  if (Status status = validate(submission.call.request); !status.ok()) return status;
  auto work = std::make_shared<detail::WorkState>([this] { flush(); });
  submission.work = work;
  if (submission.call.group) submission.group_outcome = std::make_shared<GroupOutcome>();
  const std::shared_ptr<device::StagedTensors> staged = submission.staged;
  {
    const MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    const std::string& name = submission.call.request.name;
    if (name == kJoinName && !submission.last_joined) {
      return Status(Code::kInvalidArgument,
                    "the name '" + name + "' is the library's own; give the tensor another one");
    }
    if (joining_ && !submission.last_joined) {
      return Status(Code::kInvalidArgument,
                    "tensor '" + name +
                        "' is submitted while this worker is in join; submit it before, or when "
                        "join has returned");
    }
    const Caller caller{std::this_thread::get_id(), submission.call.request.kind,
                        submission.call.group};
    if (!names_.try_emplace(name, caller).second) {
      return Status(Code::kInvalidArgument,
                    "tensor " + user_name(name) +
                        " is under way already: wait for it before submitting it again");
    }
    open_.store(true, std::memory_order_release);
    submitted_.push_back(std::move(submission));
  }
  if (staged) {
    staged->when_arrived([wake_up = wake_up_] { wake_up->set(); });
  } else {
    wake_up_->set();
  }
  return work;
}

Result<std::shared_ptr<detail::WorkState>> Coordinator::join(std::shared_ptr<int> last,
                                                             std::function<Status()> conclude) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(joining_, true)) {
      return Status(Code::kInvalidArgument,
                    "join is under way on this worker already; wait until it returns");
    }
  }
  const auto give_up = [this] {
    const MutexLock lock(mutex_);
    joining_ = false;
  };
  try {
    flush();
    MutexLock lock(mutex_);
    const Counted draining(draining_);
    completed_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) { return names_.empty(); });
  } catch (...) {
    give_up();
    throw;
  }
  NamedCall call{.request = join_request(), .make = {}, .conclude = std::move(conclude)};
  Submission submission{.call = std::move(call), .tensors = {}};
  submission.last_joined = std::move(last);
  auto submitted = submit(std::move(submission));
  if (!submitted.ok()) give_up();
  return submitted;
}

void Coordinator::flush() {
  if (!open_.load(std::memory_order_acquire)) return;
  {
    const MutexLock lock(mutex_);
    if (names_.empty()) return;
    // The flush applies to its place among the submissions, not to a moment: buckets must not
    // depend on timing.
    (submitted_.empty() ? flush_ : submitted_.back().flush_after) = true;
  }
  wake_up_->set();
}

void Coordinator::drain() {
  const std::thread::id self = std::this_thread::get_id();
  {
    MutexLock lock(mutex_);
    const Counted draining(draining_);
    completed_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) {
      return std::none_of(names_.begin(), names_.end(),
                          [self](const auto& entry) { return entry.second.thread == self; });
    });
  }
  landings_.wait();
}

std::optional<Coordinator::UnderWay> Coordinator::first_call() const {
  const MutexLock lock(mutex_);
  if (names_.empty()) return std::nullopt;
  const auto& [name, caller] = *names_.begin();
  return UnderWay{name, caller.kind, caller.group};
}

/// An exception here, such as for lack of memory, may come between an order and its result, so this
/// worker leaves. If leaving throws too, the process ends, and the others notice its death.
void Coordinator::loop() {
  name_this_thread("elastic-coord");
  try {
    serve_views();
  } catch (...) {
    fail_all(lane_.leave_for(std::current_exception()));
  }
}

void Coordinator::serve_views() {
  for (;;) {
    Result<Lane::Ownership> ownership = lane_.acquire(options_.view_timeout);
    if (!ownership.ok()) {
      Status failure = lane_.closed();
      if (failure.ok()) failure = outlast(ownership.status());
      if (failure.ok()) continue;
      return fail_all(failure);
    }
    const Status interrupted = serve(ownership.value());
    if (interrupted.code() != Code::kAborted) lane_.suspect(ownership.value(), interrupted);
  }
}

/// Serves one view until it is interrupted, and returns the reason.
Status Coordinator::serve(Lane::Ownership& ownership) {
  if (Status status = enter_view(ownership); !status.ok()) return status;
  for (;;) {
    wake_up_->clear();
    take_submissions();
    bool busy = false;
    if (Status status = exchange_notes(ownership, busy); !status.ok()) return status;
    if (Status status = run_orders(ownership, busy); !status.ok()) return status;
    if (busy) continue;
    look_for_stalls();
    if (Status status = lane_.wait(ownership, wake_up_->fd()); !status.ok()) return status;
  }
}

/// Enters the view. The hand-over comes first, because it may bring the result of the interrupted
/// operation. All requests that are not complete after it are negotiated again.
Status Coordinator::enter_view(Lane::Ownership& ownership) {
  transport::Mesh& mesh = *ownership.view().mesh;
  const Members& members = *ownership.view().members;
  const Lane::Attempt resumed = lane_.resume(ownership, running_.get());
  if (resumed.final) {
    finish(resumed);
  } else if (!resumed.status.ok()) {
    return Status(Code::kAborted, "interrupted again");
  }
  running_.reset();
  next_.reset();
  look_ahead_failure_ = {};
  orders_.clear();
  generation_ = members.generation;
  // Drops frames of older views. Frames of this view wait until an operation asks for them.
  mesh.abandon();
  mesh.begin({generation_, 0, transport::OpTag::kBeforeOperation}, {});
  routes_ = NoteRoutes(members.rank, members.size(), ownership.view().all_linked);
  negotiator_.restart(members.rank, members.size(), routes_.subtree().count);
  members_ = ownership.view().members;
  if (tuning_) tuning_->begin_view(members.size());
  for (const auto& [name, submission] : pending_) {
    if (!submission.call.group) continue;
    if (Status again = negotiate(submission); !again.ok()) return again;
  }
  return {};
}

/// A call of a group is for those of its workers that are in the present view.
Status Coordinator::negotiate(const Submission& submission) {
  if (submission.last_joined) return negotiator_.join(lane_.position());
  const NamedCall& call = submission.call;
  if (!call.group) return negotiator_.submit(call.request);
  return negotiator_.submit(GroupRequest{call.request, ranks_among(*members_, *call.group)});
}

/// The leader makes the buckets of all ranks.
void Coordinator::tune_buckets(const Submission& next) {
  if (!tuning_ || members_->rank != 0 || next.call.group) return;
  const TensorRequest& request = next.call.request;
  if (request.kind != kAllreduceRequest) return;
  const auto bucket_bytes =
      tuning_->on_submit(request.name, request.bytes(), pending_.empty(), Clock::now());
  if (bucket_bytes) negotiator_.set_bucket_bytes(*bucket_bytes);
  for (const std::string& line : tuning_->take_log()) log::info("{}", line);
}

/// Takes the submissions up to the first one with tensors that have not arrived yet.
std::vector<Submission> Coordinator::take_arrived() {
  std::vector<Submission> taken;
  const auto on_its_way =
      std::find_if(submitted_.begin(), submitted_.end(),
                   [](const Submission& its) { return its.staged && !its.staged->arrival(); });
  if (on_its_way == submitted_.end()) {
    taken.swap(submitted_);
  } else {
    taken.assign(std::make_move_iterator(submitted_.begin()), std::make_move_iterator(on_its_way));
    submitted_.erase(submitted_.begin(), on_its_way);
  }
  return taken;
}

void Coordinator::take_submissions() {
  std::vector<Submission> submitted;
  bool flush = false;
  {
    const MutexLock lock(mutex_);
    submitted = take_arrived();
    flush = std::exchange(flush_, false);
  }
  if (flush) negotiator_.flush();
  for (Submission& submission : submitted) {
    last_progress_ = Clock::now();
    Status status = submission.staged ? submission.staged->arrival().value_or(Status()) : Status();
    tune_buckets(submission);
    if (status.ok()) status = negotiate(submission);
    const std::string name = submission.call.request.name;
    const bool flush_after = submission.flush_after;
    pending_[name] = std::move(submission);
    if (!status.ok()) complete(name, status);
    if (flush_after) negotiator_.flush();
  }
}

Status Coordinator::exchange_notes(Lane::Ownership& ownership, bool& busy) {
  transport::Mesh& mesh = *ownership.view().mesh;
  if (Status status = mesh.progress(busy); !status.ok()) return status;
  for (const int peer : routes_.peers()) {
    while (const auto note = mesh.link(peer).take_note(generation_)) {
      busy = true;
      last_progress_ = Clock::now();
      if (Status status = take_note(mesh, peer, *note); !status.ok()) {
        return Status(status.code(), status.message(), peer, generation_);
      }
    }
  }
  for (RanksNote& note : negotiator_.take_outgoing()) {
    busy = true;
    const std::vector<std::byte> wrapped = routes_.wrap(std::move(note));
    for (const int rank : routes_.targets()) mesh.link(rank).send_note(generation_, wrapped);
  }
  return mesh.progress(busy);
}

Status Coordinator::take_note(transport::Mesh& mesh, int from, const std::vector<std::byte>& note) {
  const Result<NoteRoutes::Arrival> arrived = routes_.arrive(from, note);
  if (!arrived.ok()) return arrived.status();
  const NoteRoutes::Arrival& arrival = arrived.value();
  for (const int rank : arrival.pass_to) mesh.link(rank).send_note(generation_, note);
  return negotiator_.on_note(arrival.from, arrival.note);
}

void Coordinator::take_orders() {
  for (OrderItem& order : negotiator_.take_orders()) {
    note_ordered(order);
    orders_.push_back(std::move(order));
  }
}

Status Coordinator::run_orders(Lane::Ownership& ownership, bool& busy) {
  take_orders();
  const Lane::Upcoming upcoming = [&] { return look_ahead(ownership); };
  while (!orders_.empty()) {
    busy = true;
    const OrderItem& order = orders_.front();
    running_ = next_ ? std::move(next_) : operation_for(order, pending_, *ownership.view().members);
    name_operation(order);
    run_since_ = Clock::now();
    const Lane::Attempt attempt =
        lane_.attempt(ownership, *running_, is_on_device(order, pending_) ? upcoming : nullptr);
    if (!attempt.final) return Status(Code::kAborted, "interrupted");
    running_.reset();
    finish(attempt);
    orders_.pop_front();
    if (!look_ahead_failure_.ok()) return look_ahead_failure_;
    if (Status status = exchange_notes(ownership, busy); !status.ok()) return status;
  }
  return {};
}

/// Asked while the backend waits for the device: negotiates on, and makes the operation of the
/// second order. Null: there is none yet that could begin early.
Operation* Coordinator::look_ahead(Lane::Ownership& ownership) {
  take_submissions();
  bool busy = false;
  if (look_ahead_failure_.ok()) look_ahead_failure_ = exchange_notes(ownership, busy);
  take_orders();
  if (orders_.size() < 2 || !is_on_device(orders_[1], pending_)) return nullptr;
  if (!next_) next_ = operation_for(orders_[1], pending_, *ownership.view().members);
  return next_.get();
}

/// Completes the first order with its result.
void Coordinator::finish(const Lane::Attempt& attempt) {
  const OrderItem& order = orders_.front();
  if (const Status status = negotiator_.completed(order); !status.ok()) {
    log::error("negotiation: {}", status.message());
  }
  record(order, attempt);
  Status outcome = attempt.status;
  std::shared_ptr<device::Landing> landing;
  if (outcome.ok()) {
    auto coming = bring_back(order);
    outcome = coming.status();
    if (coming.ok()) landing = std::move(coming).value();
  }
  Contributors contributors = attempt.contributors;
  if (order.is_of_group() && outcome.ok()) {
    const auto found = pending_.find(order.requests->front()->name);
    if (found == pending_.end()) return;  // this rank is not in the group
    outcome = found->second.group_outcome->error;
    contributors = found->second.group_outcome->contributors;
  }
  if (outcome.ok()) outcome = conclude(order);
  // In reverse order: programs wait in the order in which they submit, so a thread that waits for
  // the first request wakes up once for the whole bucket.
  for (auto at = order.requests->rbegin(); at != order.requests->rend(); ++at) {
    complete((*at)->name,
             outcome.ok() ? Result<Contributors>(contributors) : Result<Contributors>(outcome),
             landing);
  }
}

/// Has the device copy results back to the program's tensors if they were staged. Null if none
/// were. A call with functions of its own does that itself (`conclude`).
Result<std::shared_ptr<device::Landing>> Coordinator::bring_back(const OrderItem& order) {
  std::vector<std::shared_ptr<device::StagedTensors>> all;
  for (const auto& request : *order.requests) {
    const auto found = pending_.find(request->name);
    if (found == pending_.end() || found->second.call.make) continue;
    if (found->second.staged) all.push_back(found->second.staged);
  }
  std::shared_ptr<device::Landing> landing;
  if (all.empty()) return landing;
  for (const auto& staged : all) {
    const Status status = staged->send_back();
    if (!status.ok()) return options_.leave_without_result(status);
  }
  landing = std::make_shared<device::Landing>(std::move(all), options_.leave_without_result);
  landings_.add(landing);
  return landing;
}

/// A call with a function of its own is the only one of its order.
Status Coordinator::conclude(const OrderItem& order) {
  const auto found = pending_.find(order.requests->front()->name);
  if (found == pending_.end() || !found->second.call.conclude) return {};
  return found->second.call.conclude();
}

void Coordinator::complete(const std::string& name, Result<Contributors> outcome,
                           std::shared_ptr<device::Landing> landing) {
  const auto found = pending_.find(name);
  if (found == pending_.end()) return;
  const std::shared_ptr<detail::WorkState> work = std::move(found->second.work);
  std::shared_ptr<device::StagedTensors> staged = std::move(found->second.staged);
  const bool joined = found->second.last_joined != nullptr;
  pending_.erase(found);
  bool awaited = false;
  {
    const MutexLock lock(mutex_);
    names_.erase(name);
    if (joined) joining_ = false;
    open_.store(!names_.empty(), std::memory_order_release);
    awaited = draining_ > 0;
  }
  if (outcome.ok() && landing) {
    work->complete(std::move(outcome).value(), std::move(landing), std::move(staged));
  } else {
    work->complete(std::move(outcome));
  }
  if (awaited) completed_.notify_all();
}

/// Handles a lack of progress while requests are under way: closes open buckets after kForceFlush.
/// The server warns of stalls, for it knows the calls of all ranks. The timer is armed only while
/// requests are under way.
void Coordinator::look_for_stalls() {
  wake_up_->arm(pending_.empty() ? Milliseconds(0) : kForceFlush);
  if (pending_.empty()) return;
  if (Clock::now() - last_progress_ >= kForceFlush) negotiator_.force_flush();
}

/// Handles the timeout of the wait for a view. Requests that the other ranks have been told of have
/// begun: then this worker leaves. Otherwise the submissions that have waited for as long fail and
/// leave nothing behind, and the thread continues to wait (ok).
Status Coordinator::outlast(const Status& timeout) {
  if (!pending_.empty()) return lane_.leave_after(timeout);
  std::vector<std::string> late;
  {
    const TimePoint last = Clock::now() - options_.view_timeout;
    const MutexLock lock(mutex_);
    const auto in_time = std::find_if(submitted_.begin(), submitted_.end(),
                                      [&](const Submission& its) { return its.since > last; });
    for (auto its = submitted_.begin(); its != in_time; ++its) {
      late.push_back(its->call.request.name);
      pending_[late.back()] = std::move(*its);
    }
    submitted_.erase(submitted_.begin(), in_time);
  }
  for (auto name = late.rbegin(); name != late.rend(); ++name) {
    if (const auto& withdrawn = pending_[*name].call.withdrawn) withdrawn();
  }
  for (const std::string& name : late) complete(name, timeout);
  return {};
}

void Coordinator::fail_all(const Status& reason) {
  {
    const MutexLock lock(mutex_);
    closed_ = reason;
    for (Submission& submission : submitted_) {
      const std::string name = submission.call.request.name;
      pending_[name] = std::move(submission);
    }
    submitted_.clear();
  }
  running_.reset();  // and with it the memory of its tensors
  next_.reset();
  while (!pending_.empty()) {
    const std::string name = pending_.begin()->first;  // a copy: `complete` erases the key
    complete(name, reason);
  }
}

}  // namespace elastic::coordinator
