#include "runtime/allreduces.hpp"

#include <memory>
#include <string>

#include "base/reduce_ops.hpp"
#include "coordinator/device_operation.hpp"
#include "coordinator/operation.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic::runtime {

namespace {

/// For messages.
std::string name_of_call(std::span<const TensorView> tensors) {
  std::size_t bytes = 0;
  for (const TensorView& tensor : tensors) bytes += device::on_device(tensor) ? tensor.bytes() : 0;
  return "an allreduce of " + std::to_string(tensors.size()) +
         (tensors.size() == 1 ? " tensor (" : " tensors (") + std::to_string(bytes) +
         " bytes on a device)";
}

std::unique_ptr<coordinator::Operation> operation_on(
    const std::shared_ptr<device::StagedTensors>& staged, ReduceOp op,
    const std::vector<collectives::Wire>& wires, Scale scale) {
  if (staged->when() == device::Fetch::kOnDemand) {
    return coordinator::device_allreduce({{staged}}, op, wires);
  }
  return std::make_unique<coordinator::AllreduceOperation>(staged->inputs(), staged->outputs(), op,
                                                           wires, scale);
}

}  // namespace

/// Goes through host memory, unless the backend takes the tensors in place. No backend scales them
/// there.
Contributors Allreduces::staged(std::span<const ConstTensorView> in,
                                std::span<const TensorView> out, ReduceOp op, CudaStream stream,
                                const std::vector<collectives::Wire>& wires, Scale scale) {
  (void)runner_.members();
  runner_.flush();
  const std::shared_ptr<device::StagedTensors> staged = value_or_throw(
      devices_.stage(name_of_call(out), in, out, stream,
                     scales_nothing(scale) ? runner_.fetch() : device::Fetch::kAtOnce));
  // This wait does not count as communication: it is mostly for the device's computation.
  raise_if(staged->read());
  const Blocked blocked;
  const std::unique_ptr<coordinator::Operation> operation = operation_on(staged, op, wires, scale);
  Contributors contributors = value_or_throw(runner_.run(*operation));
  Status back = staged->send_back();
  if (back.ok()) back = staged->wait_until_back();
  if (!back.ok()) raise_if(runner_.leave_without_result(back));
  return contributors;
}

Contributors Allreduces::grouped(std::span<const TensorView> tensors, ReduceOp op,
                                 CudaStream stream, const std::vector<collectives::Wire>& wires,
                                 Scale scale) {
  const std::vector<ConstTensorView> inputs(tensors.begin(), tensors.end());
  if (any_on_device(tensors)) return staged(inputs, tensors, op, stream, wires, scale);
  check_no_stream(stream);
  for (const TensorView& tensor : tensors) raise_if(devices_.check_host(tensor));
  coordinator::AllreduceOperation operation(inputs, {tensors.begin(), tensors.end()}, op, wires,
                                            scale);
  return value_or_throw(runner_.run(operation));
}

Contributors Allreduces::cast(std::span<const CastTensor> tensors, ReduceOp op, CudaStream stream) {
  std::vector<TensorView> views;
  std::vector<collectives::Wire> wires;
  for (const CastTensor& tensor : tensors) {
    check(tensor, op);
    views.push_back(tensor.data);
    wires.push_back({tensor.wire_dtype, tensor.scale});
  }
  check_group(views, "cast_allreduce");
  check(op, views, "cast_allreduce");
  return grouped(views, op, stream, wires);
}

}  // namespace elastic::runtime
