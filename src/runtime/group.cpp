#include "elastic/group.hpp"

#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/in_callback.hpp"
#include "runtime/applied_rule.hpp"
#include "runtime/group_impl.hpp"
#include "runtime/groups.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

namespace {

using coordinator::Members;
using coordinator::Operation;

/// The operation of a blocking call, for as long as the call lasts.
class BorrowedOperation final : public Operation {
 public:
  /// `thrown` gets an exception of the program's own function, which the caller is to see.
  BorrowedOperation(Operation& operation, std::exception_ptr& thrown)
      : operation_(operation), thrown_(thrown) {}
  bool is_lost(const Members& members) const override { return operation_.is_lost(members); }
  collectives::Call call(const Members& members) override { return operation_.call(members); }
  void pack(const Members& members, collectives::Payload& payload) override {
    operation_.pack(members, payload);
  }
  void unpack(const Members& members, const collectives::Payload& payload) override {
    try {
      operation_.unpack(members, payload);
    } catch (...) {
      thrown_ = std::current_exception();
      throw;
    }
  }

 private:
  Operation& operation_;
  std::exception_ptr& thrown_;
};

/// Calls without a name agree on no more than that there is one: the ranks of the group compare the
/// calls themselves.
coordinator::TensorRequest unnamed_request() {
  return {{}, coordinator::kUnnamedRequest, ReduceOp::kSum, {{DType::kU8, 0}}};
}

}  // namespace

Group::Impl::Impl(Context::Impl& job, Rules rules)
    : job_(job),
      rules_(std::move(rules)),
      name_(runtime::group_name(rules_)),
      mark_(runtime::group_mark(rules_)),
      allreduces_(job.devices(), *this),
      collectives_(job.devices(), *this),
      queue_([this] { job_.coordinator().flush(); }),
      membership_(rules_) {}

void Group::Impl::renew() const {
  membership_.renew(job_.control().roster(), job_.control().identity().id, job_.joins());
}

std::shared_ptr<const Members> Group::Impl::present() const {
  const auto view = job_.view();
  if (!view) {
    const auto nothing = std::make_shared<Members>();
    nothing->rank = -1;
    return nothing;
  }
  const MutexLock lock(mutex_);
  renew();
  return membership_.present(*view->members);
}

std::string Group::Impl::where() const {
  const auto view = job_.view();
  if (!view) return {};
  const auto workers = present()->contributors().workers();
  return coordinator::describe_group(
      coordinator::ranks_among(*view->members, {workers.begin(), workers.end()}));
}

std::shared_ptr<const Members> Group::Impl::members() const {
  (void)job_.members();
  auto members = present();
  if (members->rank < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "this worker, rank " + std::to_string(job_.members()->rank) +
                    " of the job, is not in the group '" + name_ +
                    "', whose collectives are for its " + std::to_string(members->size()) +
                    (members->size() == 1 ? " member" : " members"));
  }
  return members;
}

/// Blocking calls come after those that `queue` has started.
void Group::Impl::flush() {
  job_.coordinator().flush();
  queue_.wait();
}

Result<Contributors> Group::Impl::run(Operation& operation) {
  refuse_in_callback("a collective of a group");
  const runtime::Blocked blocked;
  flush();
  std::exception_ptr thrown;
  std::string name;
  const auto state = submit_named({unnamed_request(),
                                   [&](const Members& /*members*/) {
                                     return std::make_unique<BorrowedOperation>(operation, thrown);
                                   }},
                                  nullptr, &name);
  try {
    state->wait();
  } catch (...) {
    // The coordinator has the caller's tensors until the call has ended.
    (void)job_.control().lane(runtime::kNamedLane).leave_for(std::current_exception());
    state->wait_regardless();
    throw;
  }
  if (thrown) std::rethrow_exception(thrown);
  Result<Contributors> outcome = state->outcome();
  if (outcome.status().code() == Code::kTimeout) {
    // It had not begun, or this worker has left the job.
    const MutexLock lock(mutex_);
    membership_.forget_call(name);
  }
  return outcome;
}

/// Names a call, or puts the group's own mark before its name. `name` gets the result.
std::shared_ptr<detail::WorkState> Group::Impl::submit_named(NamedCall call, const Staged& staged,
                                                             std::string* name) const {
  (void)members();
  {
    const MutexLock lock(mutex_);
    renew();
    call.request.name = membership_.name_call(call.request.name);
    call.group = membership_.workers();
    if (name != nullptr) *name = call.request.name;
  }
  return runtime::value_or_throw(job_.coordinator().submit(std::move(call), staged));
}

Work Group::Impl::submit_allreduce(std::string_view name, std::vector<ConstTensorView> in,
                                   std::vector<TensorView> out, ReduceOp op, Scale scale,
                                   const Staged& staged) const {
  coordinator::TensorRequest request{
      std::string(name), coordinator::kAllreduceRequest, op, {}, scale};
  for (const TensorView& tensor : out) request.tensors.push_back({tensor.dtype, tensor.count});
  NamedCall call{std::move(request),
                 [in = std::move(in), out = std::move(out), op, scale](const Members& /*members*/) {
                   return std::make_unique<coordinator::AllreduceOperation>(
                       in, out, op, std::vector<collectives::Wire>(), scale);
                 }};
  if (staged) {
    // The group may end before its call does.
    call.conclude = [&job = job_, staged] {
      return job.bring_back(staged, std::numeric_limits<std::size_t>::max());
    };
  }
  return Work(submit_named(std::move(call), staged));
}

Contributors Group::Impl::scaled_allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                           Scale scale) {
  job_.check_lies_on_host(in);
  job_.check_lies_on_host(out);
  coordinator::AllreduceOperation operation({in}, {out}, op, {}, scale);
  return runtime::value_or_throw(run(operation));
}

Contributors Group::Impl::barrier() {
  coordinator::BarrierOperation operation;
  return runtime::value_or_throw(run(operation));
}

Work Group::Impl::submit(const char* call, std::string_view name,
                         std::span<const TensorView> tensors, ReduceOp op, Scale scale,
                         CudaStream stream) {
  runtime::check_group(tensors, call);
  runtime::check(op, tensors, call);
  runtime::check(scale, tensors, call);
  if (runtime::any_on_device(tensors)) {
    job_.prepare_named(call, name);
    const std::vector<ConstTensorView> inputs(tensors.begin(), tensors.end());
    const auto staged = job_.stage_named(call, inputs, tensors, stream);
    return submit_allreduce(name, staged->inputs(), staged->outputs(), op, scale, staged);
  }
  runtime::check_no_stream(stream);
  for (const TensorView& tensor : tensors) job_.prepare_named(call, name, tensor);
  return submit_allreduce(name, {tensors.begin(), tensors.end()}, {tensors.begin(), tensors.end()},
                          op, scale);
}

Work Group::Impl::submit(const char* call, std::string_view name, const ConstTensorView& in,
                         const TensorView& out, ReduceOp op) {
  job_.prepare_named(call, name, in);
  job_.prepare_named(call, name, out);
  return submit_allreduce(name, {in}, {out}, op, Scale(1, 1));
}

Work Group::Impl::submit(const char* call, const ConstTensorView& tensor, NamedCall named) {
  job_.prepare_named(call, named.request.name, tensor);
  return Work(submit_named(std::move(named)));
}

Work Group::Impl::submit(const char* call, std::string_view name, const ConstTensorView& in,
                         const TensorView& out, CudaStream stream, const MakeNamed& make) {
  job_.prepare_named(call, name);
  const Staged staged = job_.stage_named(call, {&in, 1}, {&out, 1}, stream);
  // The group may end before its call does.
  const runtime::NamedPlaces places(in, out, staged, [&job = job_, staged](std::size_t bytes) {
    return job.bring_back(staged, bytes);
  });
  return Work(submit_named(make(places), staged));
}

Work Group::Impl::queue(const char* call, std::function<Contributors()> make) {
  refuse_in_callback(call);
  (void)members();
  return Work(queue_.add(std::move(make)));
}

Group::Group(Context& context, std::unique_ptr<Impl> impl)
    : context_(context), impl_(std::move(impl)) {}
Group::~Group() = default;

runtime::ScopeUse Group::scope() {
  runtime::refuse_in_rule("a collective of a group");
  const auto use = context_.impl_.operator->();
  return {*impl_, use.prolong()};
}

int Group::rank() const {
  runtime::refuse_in_rule("Group::rank");
  (void)context_.impl_->show_view();
  return impl_->present()->rank;
}

int Group::size() const {
  runtime::refuse_in_rule("Group::size");
  (void)context_.impl_->show_view();
  return impl_->present()->size();
}

Contributors Group::members() const {
  runtime::refuse_in_rule("Group::members");
  (void)context_.impl_->show_view();
  const auto members = impl_->present();
  return members->size() > 0 ? members->contributors() : Contributors();
}

const std::string& Group::name() const {
  return impl_->name();
}

Group& Group::group(const GroupRule& rule) {
  runtime::refuse_in_rule("Group::group");
  Impl::Rules rules = impl_->rules();
  rules.push_back(rule);
  return context_.groups_->of(context_, std::move(rules));
}

Group& Context::group(const GroupRule& rule) {
  runtime::refuse_in_rule("Context::group");
  (void)rank();
  return groups_->of(*this, {rule});
}

Group& Context::Groups::of(Context& context, std::vector<GroupRule> rules) {
  const auto use = context.impl_.operator->();
  const MutexLock lock(mutex);
  std::vector<std::string> names;
  for (const GroupRule& rule : rules) names.push_back(rule.name());
  auto& group = by_rules[names];
  if (!group) {
    auto impl = std::make_unique<Group::Impl>(*use.operator->(), std::move(rules));
    group.reset(new Group(context, std::move(impl)));
  }
  return *group;
}

std::vector<Group*> Context::Groups::all() const {
  const MutexLock lock(mutex);
  std::vector<Group*> all;
  for (const auto& [name, group] : by_rules) all.push_back(group.get());
  return all;
}

/// Ends the calls of groups that are queued, which have to end soon: the lanes are closed.
void Context::Impl::stop_groups() {
  if (!groups_) return;  // the context could not be made
  for (Group* const group : groups_->all()) group->impl_->stop();
}

void Context::Impl::finish_groups() {
  for (Group* const group : groups_->all()) group->impl_->finish_queued();
}

}  // namespace elastic
