#include "runtime/messages.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coordinator/block_operations.hpp"
#include "coordinator/group_names.hpp"
#include "runtime/result_room.hpp"

namespace elastic::runtime {

namespace {

using coordinator::CallRoot;
using coordinator::Members;
using coordinator::Operation;

/// "4b8d182c…", as logs name a worker.
std::string short_name(WorkerId id) {
  return fmt::format("{:016x}", id).substr(0, 8) + "…";
}

/// The operation of a message for the members that are left of the two. `take` is called on the
/// receiver.
std::unique_ptr<Operation> operation(const ConstTensorView& block, WorkerId receiver,
                                     const Members& members,
                                     coordinator::GatherOperation::Take take) {
  if (members.size() < 2) return std::make_unique<coordinator::BarrierOperation>();
  return std::make_unique<coordinator::GatherOperation>(block, CallRoot(receiver, members),
                                                        coordinator::RowShape(), std::move(take));
}

/// The error in which a message ends where one of the two has left.
Status lost(const char* call, WorkerId peer) {
  return Status(Code::kRootLost, std::string(call) + ": worker " + short_name(peer) +
                                     " has left the job before the message was complete");
}

}  // namespace

std::uint64_t Messages::Numbers::next(const Key& key) {
  const MutexLock lock(mutex);
  return ++latest[key];
}

void Messages::Numbers::withdraw(const Key& key, std::uint64_t number) {
  const MutexLock lock(mutex);
  std::uint64_t& last = latest[key];
  if (last == number) --last;
}

Messages::NamedCall Messages::call(const Ends& ends, bool sends, DType dtype) {
  const Numbers::Key key{ends, sends};
  const std::uint64_t number = numbers_->next(key);
  NamedCall call;
  call.withdrawn = [numbers = numbers_, key, number] { numbers->withdraw(key, number); };
  call.request = {coordinator::message_name(ends.from, ends.to, ends.group, ends.tag, number),
                  coordinator::kMessageRequest,
                  ReduceOp::kSum,
                  {{dtype, 0}}};
  call.group =
      std::make_shared<const std::vector<WorkerId>>(std::vector<WorkerId>{ends.from, ends.to});
  return call;
}

Messages::NamedCall Messages::send(const Ends& ends, const ConstTensorView& data) {
  NamedCall made = call(ends, true, data.dtype);
  const auto alone = std::make_shared<bool>(false);
  made.make = [=](const Members& members) {
    *alone = members.size() < 2;
    return operation(data, ends.to, members, [](auto, auto) {});
  };
  made.conclude = [=] { return *alone ? lost("send", ends.to) : Status(); };
  return made;
}

Messages::NamedCall Messages::receive(const Ends& ends, const TensorView& out,
                                      const std::shared_ptr<ReceivedMessage>& result) {
  NamedCall made = call(ends, false, out.dtype);
  const auto alone = std::make_shared<bool>(false);
  made.make = [=](const Members& members) {
    *alone = members.size() < 2;
    return operation({out.data, 0, out.dtype, {}}, ends.to, members,
                     [=](std::span<const std::byte> values, auto /*counts*/) {
                       put(values, out);
                       result->count = values.size() / size_of(out.dtype);
                     });
  };
  made.conclude = [=]() -> Status {
    if (*alone) return lost("recv", ends.from);
    if (result->count <= out.count) return {};
    return Status(Code::kInvalidArgument,
                  "recv: the message has " + std::to_string(result->count) +
                      " elements, and the output has room for " + std::to_string(out.count) +
                      ": it is lost, and its sender is done; have it sent again, to an output that "
                      "is large enough");
  };
  return made;
}

}  // namespace elastic::runtime
