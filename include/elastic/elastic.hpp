#pragma once

#include <string>
#include <utility>

#include "elastic/context.hpp"
#include "elastic/state.hpp"

/// elastic: allreduce for trainers on hosts that come and go. The functions below act on a default
/// context, made by `init`. See Context for what each means. <elastic/training.hpp> has what a
/// training needs besides: data, learning rates, optimizers, compression.
namespace elastic {

/// Joins the job that the launcher (elasticrun, mpirun) started this process for. Once per process.
/// A replacement that comes when the job is done or stopped has nothing left to do: init says so on
/// stderr and ends the process with exit(0). A worker of no launcher, which may have been meant for
/// another training, gets kRefused.
/// \throws Error as the constructor of Context; also kInvalidArgument on a second call.
ELASTIC_API void init(const Options& options = {});
/// Says that the job is done and waits for the others to say so, for half a second as a rule and 30
/// s at the longest; after an exception that left `run` says that this worker cannot go on. See
/// Context::shutdown.
/// \throws Error as Context::shutdown; also kNotInitialized before `init` and on a second call.
ELASTIC_API void shutdown();
/// \returns the default context.
/// \throws Error kNotInitialized before `init` and after `shutdown`.
ELASTIC_API Context& context();

/// Context::rank of the default context.
/// \returns what Context::rank returns.
/// \throws Error as Context::rank; also kNotInitialized before `init`.
inline int rank() {
  return context().rank();
}

/// Context::size of the default context.
/// \returns what Context::size returns.
/// \throws Error as Context::size; also kNotInitialized before `init`.
inline int size() {
  return context().size();
}

/// Context::local_rank of the default context.
/// \returns what Context::local_rank returns.
/// \throws Error as Context::local_rank; also kNotInitialized before `init`.
inline int local_rank() {
  return context().local_rank();
}

/// Context::local_size of the default context.
/// \returns what Context::local_size returns.
/// \throws Error as Context::local_size; also kNotInitialized before `init`.
inline int local_size() {
  return context().local_size();
}

/// Context::generation of the default context.
/// \returns what Context::generation returns.
/// \throws Error as Context::generation; also kNotInitialized before `init`.
inline std::uint64_t generation() {
  return context().generation();
}

/// Context::members of the default context.
/// \returns what Context::members returns.
/// \throws Error as Context::members; also kNotInitialized before `init`.
inline Contributors members() {
  return context().members();
}

/// Context::tuning of the default context.
/// \returns what Context::tuning returns.
/// \throws Error as Context::tuning; also kNotInitialized before `init`.
inline Tuning tuning() {
  return context().tuning();
}

/// Context::step_times of the default context.
/// \returns what Context::step_times returns.
/// \throws Error as Context::step_times; also kNotInitialized before `init`.
inline StepTimes step_times() {
  return context().step_times();
}

/// Context::compression of the default context.
/// \returns what Context::compression returns.
/// \throws Error as Context::compression; also kNotInitialized before `init`.
inline Compression compression() {
  return context().compression();
}

/// Context::start_timeline of the default context.
/// \throws Error as Context::start_timeline; also kNotInitialized before `init`.
inline void start_timeline(const std::string& path) {
  context().start_timeline(path);
}

/// Context::stop_timeline of the default context.
/// \throws Error as Context::stop_timeline; also kNotInitialized before `init`.
inline void stop_timeline() {
  context().stop_timeline();
}

/// Context::timeline_file of the default context.
/// \returns what Context::timeline_file returns.
/// \throws Error as Context::timeline_file; also kNotInitialized before `init`.
inline std::string timeline_file() {
  return context().timeline_file();
}

/// Context::last_view_change of the default context.
/// \returns what Context::last_view_change returns.
/// \throws Error as Context::last_view_change; also kNotInitialized before `init`.
inline ViewChange last_view_change() {
  return context().last_view_change();
}

/// Context::resize_policy of the default context.
/// \returns what Context::resize_policy returns.
/// \throws Error as Context::resize_policy; also kNotInitialized before `init`.
inline ResizePolicy resize_policy() {
  return context().resize_policy();
}

/// Context::allocate of the default context.
/// \returns what Context::allocate returns.
/// \throws Error as Context::allocate; also kNotInitialized before `init`.
inline Allocation allocate(std::size_t bytes) {
  return context().allocate(bytes);
}

/// Context::allreduce of the default context.
/// \returns what Context::allreduce returns.
/// \throws Error as Context::allreduce; also kNotInitialized before `init`.
/// \{
template <Element T>
Contributors allreduce(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
  return context().allreduce(data, op);
}
template <Element T>
Contributors allreduce(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::kSum) {
  return context().allreduce(in, out, op);
}
template <detail::ContiguousRange R>
Contributors allreduce(R&& data, ReduceOp op = ReduceOp::kSum) {
  return context().allreduce(std::forward<R>(data), op);
}
template <detail::ContiguousRange In, detail::ContiguousRange Out>
Contributors allreduce(const In& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
  return context().allreduce(in, std::forward<Out>(out), op);
}
inline Contributors allreduce(TensorView data, ReduceOp op = ReduceOp::kSum,
                              CudaStream stream = {}) {
  return context().allreduce(data, op, stream);
}
inline Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                              CudaStream stream = {}) {
  return context().allreduce(in, out, op, stream);
}
/// \}

/// Context::allreduce with factors, on the default context.
/// \returns what Context::allreduce returns.
/// \throws Error as Context::allreduce with factors; also kNotInitialized before `init`.
/// \{
template <detail::ContiguousRange R>
Contributors allreduce(R&& data, ReduceOp op, Scale scale) {
  return context().allreduce(std::forward<R>(data), op, scale);
}
inline Contributors allreduce(TensorView data, ReduceOp op, Scale scale, CudaStream stream = {}) {
  return context().allreduce(data, op, scale, stream);
}
inline Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op, Scale scale,
                              CudaStream stream = {}) {
  return context().allreduce(in, out, op, scale, stream);
}
/// \}

/// Context::allreduce of one number, on the default context.
/// \returns the result.
/// \throws Error as Context::allreduce; also kNotInitialized before `init`.
template <detail::Number T>
[[nodiscard]] T allreduce(T value, ReduceOp op = ReduceOp::kSum) {
  return context().allreduce(value, op);
}

/// Context::grouped_allreduce of the default context.
/// \returns what Context::grouped_allreduce returns.
/// \throws Error as Context::grouped_allreduce; also kNotInitialized before `init`.
inline Contributors grouped_allreduce(std::span<const TensorView> tensors,
                                      ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().grouped_allreduce(tensors, op, stream);
}

/// Context::grouped_reduce_scatter of the default context.
/// \returns what Context::grouped_reduce_scatter returns.
/// \throws Error as Context::grouped_reduce_scatter; also kNotInitialized before `init`.
/// \{
inline ScatteredTensors grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                               std::span<const TensorView> outputs,
                                               ReduceOp op = ReduceOp::kSum,
                                               CudaStream stream = {}) {
  return context().grouped_reduce_scatter(inputs, outputs, op, stream);
}
inline ScatteredTensors grouped_reduce_scatter(std::span<const TensorView> inputs,
                                               std::span<const TensorView> outputs,
                                               ReduceOp op = ReduceOp::kSum,
                                               CudaStream stream = {}) {
  return context().grouped_reduce_scatter(inputs, outputs, op, stream);
}
/// \}

/// Context::grouped_allgather of the default context.
/// \returns what Context::grouped_allgather returns.
/// \throws Error as Context::grouped_allgather; also kNotInitialized before `init`.
/// \{
inline GatheredTensors grouped_allgather(std::span<const ConstTensorView> blocks,
                                         std::span<const TensorView> outputs,
                                         CudaStream stream = {}) {
  return context().grouped_allgather(blocks, outputs, stream);
}
inline GatheredTensors grouped_allgather(std::span<const TensorView> blocks,
                                         std::span<const TensorView> outputs,
                                         CudaStream stream = {}) {
  return context().grouped_allgather(blocks, outputs, stream);
}
/// \}

/// Context::grouped_allreduce with factors, on the default context.
/// \returns what Context::grouped_allreduce returns.
/// \throws Error as Context::grouped_allreduce with factors; also kNotInitialized before `init`.
inline Contributors grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op, Scale scale,
                                      CudaStream stream = {}) {
  return context().grouped_allreduce(tensors, op, scale, stream);
}

/// Context::cast_allreduce of the default context.
/// \returns what Context::cast_allreduce returns.
/// \throws Error as Context::cast_allreduce; also kNotInitialized before `init`.
inline Contributors cast_allreduce(std::span<const CastTensor> tensors,
                                   ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().cast_allreduce(tensors, op, stream);
}

/// Context::allreduce_async of the default context, with its arguments.
/// \returns what Context::allreduce_async returns.
/// \throws Error as Context::allreduce_async; also kNotInitialized before `init`.
/// \{
template <typename... Arguments>
[[nodiscard]] auto allreduce_async(Arguments&&... arguments) {
  return context().allreduce_async(std::forward<Arguments>(arguments)...);
}
[[nodiscard]] inline Work allreduce_async(std::string_view name, TensorView data, ReduceOp op,
                                          CudaStream stream) {
  return context().allreduce_async(name, data, op, stream);
}
/// \}

/// Context::allreduce_async with factors, on the default context.
/// \returns what Context::allreduce_async returns.
/// \throws Error as Context::allreduce_async with factors; also kNotInitialized before `init`.
/// \{
template <detail::ContiguousRange R>
[[nodiscard]] Work allreduce_async(std::string_view name, R&& data, ReduceOp op, Scale scale) {
  return context().allreduce_async(name, std::forward<R>(data), op, scale);
}
[[nodiscard]] inline Work allreduce_async(std::string_view name, TensorView data, ReduceOp op,
                                          Scale scale, CudaStream stream = {}) {
  return context().allreduce_async(name, data, op, scale, stream);
}
/// \}

/// Context::grouped_allreduce_async of the default context, with its arguments.
/// \returns what Context::grouped_allreduce_async returns.
/// \throws Error as Context::grouped_allreduce_async; also kNotInitialized before `init`.
/// \{
template <typename... Arguments>
[[nodiscard]] auto grouped_allreduce_async(Arguments&&... arguments) {
  return context().grouped_allreduce_async(std::forward<Arguments>(arguments)...);
}
[[nodiscard]] inline Work grouped_allreduce_async(std::string_view name,
                                                  std::span<const TensorView> tensors,
                                                  ReduceOp op = ReduceOp::kSum,
                                                  CudaStream stream = {}) {
  return context().grouped_allreduce_async(name, tensors, op, stream);
}
/// \}

/// Context::grouped_reduce_scatter_async of the default context.
/// \returns what Context::grouped_reduce_scatter_async returns.
/// \throws Error as Context::grouped_reduce_scatter_async; also kNotInitialized before `init`.
/// \{
[[nodiscard]] inline Pending<ScatteredTensors> grouped_reduce_scatter_async(
    std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
    ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().grouped_reduce_scatter_async(inputs, outputs, op, stream);
}
[[nodiscard]] inline Pending<ScatteredTensors> grouped_reduce_scatter_async(
    std::span<const TensorView> inputs, std::span<const TensorView> outputs,
    ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().grouped_reduce_scatter_async(inputs, outputs, op, stream);
}
/// \}

/// Context::grouped_allgather_async of the default context.
/// \returns what Context::grouped_allgather_async returns.
/// \throws Error as Context::grouped_allgather_async; also kNotInitialized before `init`.
/// \{
[[nodiscard]] inline Pending<GatheredTensors> grouped_allgather_async(
    std::span<const ConstTensorView> blocks, std::span<const TensorView> outputs,
    CudaStream stream = {}) {
  return context().grouped_allgather_async(blocks, outputs, stream);
}
[[nodiscard]] inline Pending<GatheredTensors> grouped_allgather_async(
    std::span<const TensorView> blocks, std::span<const TensorView> outputs,
    CudaStream stream = {}) {
  return context().grouped_allgather_async(blocks, outputs, stream);
}
/// \}

/// Context::broadcast_async of the default context, with its arguments.
/// \returns what Context::broadcast_async returns.
/// \throws Error as Context::broadcast_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto broadcast_async(Arguments&&... arguments) {
  return context().broadcast_async(std::forward<Arguments>(arguments)...);
}

/// Context::allgather_async of the default context, with its arguments.
/// \returns what Context::allgather_async returns.
/// \throws Error as Context::allgather_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto allgather_async(Arguments&&... arguments) {
  return context().allgather_async(std::forward<Arguments>(arguments)...);
}

/// Context::reduce_scatter_async of the default context, with its arguments.
/// \returns what Context::reduce_scatter_async returns.
/// \throws Error as Context::reduce_scatter_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto reduce_scatter_async(Arguments&&... arguments) {
  return context().reduce_scatter_async(std::forward<Arguments>(arguments)...);
}

/// Context::alltoall_async of the default context, with its arguments.
/// \returns what Context::alltoall_async returns.
/// \throws Error as Context::alltoall_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto alltoall_async(Arguments&&... arguments) {
  return context().alltoall_async(std::forward<Arguments>(arguments)...);
}

/// Context::gather_async of the default context, with its arguments.
/// \returns what Context::gather_async returns.
/// \throws Error as Context::gather_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto gather_async(Arguments&&... arguments) {
  return context().gather_async(std::forward<Arguments>(arguments)...);
}

/// Context::scatter_async of the default context, with its arguments.
/// \returns what Context::scatter_async returns.
/// \throws Error as Context::scatter_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto scatter_async(Arguments&&... arguments) {
  return context().scatter_async(std::forward<Arguments>(arguments)...);
}

/// Context::reduce_async of the default context, with its arguments.
/// \returns what Context::reduce_async returns.
/// \throws Error as Context::reduce_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto reduce_async(Arguments&&... arguments) {
  return context().reduce_async(std::forward<Arguments>(arguments)...);
}

/// Context::scan_async of the default context, with its arguments.
/// \returns what Context::scan_async returns.
/// \throws Error as Context::scan_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto scan_async(Arguments&&... arguments) {
  return context().scan_async(std::forward<Arguments>(arguments)...);
}

/// Context::exscan_async of the default context, with its arguments.
/// \returns what Context::exscan_async returns.
/// \throws Error as Context::exscan_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto exscan_async(Arguments&&... arguments) {
  return context().exscan_async(std::forward<Arguments>(arguments)...);
}

/// Context::barrier_async of the default context, with its arguments.
/// \returns what Context::barrier_async returns.
/// \throws Error as Context::barrier_async; also kNotInitialized before `init`.
template <typename... Arguments>
[[nodiscard]] auto barrier_async(Arguments&&... arguments) {
  return context().barrier_async(std::forward<Arguments>(arguments)...);
}

/// Context::grouped_allreduce_async with factors, on the default context.
/// \returns what Context::grouped_allreduce_async returns.
/// \throws Error as Context::grouped_allreduce_async with factors; also kNotInitialized before
///   `init`.
[[nodiscard]] inline Work grouped_allreduce_async(std::string_view name,
                                                  std::span<const TensorView> tensors, ReduceOp op,
                                                  Scale scale, CudaStream stream = {}) {
  return context().grouped_allreduce_async(name, tensors, op, scale, stream);
}

/// Context::broadcast of the default context.
/// \returns what Context::broadcast returns.
/// \throws Error as Context::broadcast; also kNotInitialized before `init`.
/// \{
template <Element T>
Contributors broadcast(std::span<T> data, int root) {
  return context().broadcast(data, root);
}
template <detail::ContiguousRange R>
Contributors broadcast(R&& data, int root) {
  return context().broadcast(std::forward<R>(data), root);
}
inline Contributors broadcast(TensorView data, int root, CudaStream stream = {}) {
  return context().broadcast(data, root, stream);
}
/// \}

/// Context::broadcast_from of the default context.
/// \returns what Context::broadcast_from returns.
/// \throws Error as Context::broadcast_from; also kNotInitialized before `init`.
/// \{
template <Element T>
Contributors broadcast_from(std::span<T> data, WorkerId root) {
  return context().broadcast_from(data, root);
}
template <detail::ContiguousRange R>
Contributors broadcast_from(R&& data, WorkerId root) {
  return context().broadcast_from(std::forward<R>(data), root);
}
inline Contributors broadcast_from(TensorView data, WorkerId root, CudaStream stream = {}) {
  return context().broadcast_from(data, root, stream);
}
/// \}

/// Context::allgather of the default context.
/// \returns what Context::allgather returns.
/// \throws Error as Context::allgather; also kNotInitialized before `init`.
/// \{
template <Element T>
Gathered<T> allgather(std::span<const T> block) {
  return context().allgather(block);
}
template <detail::ContiguousRange R>
Gathered<detail::ElementOf<R>> allgather(const R& block) {
  return context().allgather(block);
}
inline GatheredBlocks allgather(ConstTensorView block, TensorView out, CudaStream stream = {}) {
  return context().allgather(block, out, stream);
}
/// \}

/// Context::reduce_scatter of the default context.
/// \returns what Context::reduce_scatter returns.
/// \throws Error as Context::reduce_scatter; also kNotInitialized before `init`.
/// \{
template <Element T>
Scattered<T> reduce_scatter(std::span<const T> data, ReduceOp op = ReduceOp::kSum) {
  return context().reduce_scatter(data, op);
}
template <detail::ContiguousRange R>
Scattered<detail::ElementOf<R>> reduce_scatter(const R& data, ReduceOp op = ReduceOp::kSum) {
  return context().reduce_scatter(data, op);
}
inline ScatteredPart reduce_scatter(ConstTensorView data, TensorView out,
                                    ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().reduce_scatter(data, out, op, stream);
}
/// \}

/// Context::alltoall of the default context.
/// \returns what Context::alltoall returns.
/// \throws Error as Context::alltoall; also kNotInitialized before `init`.
/// \{
template <Element T>
Gathered<T> alltoall(std::span<const T> data, std::span<const std::size_t> counts = {},
                     const Contributors& to = {}) {
  return context().alltoall(data, counts, to);
}
template <detail::ContiguousRange R>
Gathered<detail::ElementOf<R>> alltoall(const R& data, std::span<const std::size_t> counts = {},
                                        const Contributors& to = {}) {
  return context().alltoall(data, counts, to);
}
inline GatheredBlocks alltoall(const BlocksView& blocks, TensorView out, CudaStream stream = {}) {
  return context().alltoall(blocks, out, stream);
}
/// \}

/// Context::gather of the default context.
/// \returns what Context::gather returns.
/// \throws Error as Context::gather; also kNotInitialized before `init`.
/// \{
template <Element T>
Gathered<T> gather(std::span<const T> block, Root root) {
  return context().gather(block, root);
}
template <detail::ContiguousRange R>
Gathered<detail::ElementOf<R>> gather(const R& block, Root root) {
  return context().gather(block, root);
}
inline GatheredBlocks gather(ConstTensorView block, TensorView out, Root root,
                             CudaStream stream = {}) {
  return context().gather(block, out, root, stream);
}
/// \}

/// Context::scatter of the default context.
/// \returns what Context::scatter returns.
/// \throws Error as Context::scatter; also kNotInitialized before `init`.
/// \{
template <Element T>
Scattered<T> scatter(std::span<const T> data, Root root, std::span<const std::size_t> counts = {},
                     const Contributors& to = {}) {
  return context().scatter(data, root, counts, to);
}
template <detail::ContiguousRange R>
Scattered<detail::ElementOf<R>> scatter(const R& data, Root root,
                                        std::span<const std::size_t> counts = {},
                                        const Contributors& to = {}) {
  return context().scatter(data, root, counts, to);
}
inline ScatteredPart scatter(const BlocksView& blocks, TensorView out, Root root,
                             CudaStream stream = {}) {
  return context().scatter(blocks, out, root, stream);
}
/// \}

/// Context::reduce of the default context.
/// \returns what Context::reduce returns.
/// \throws Error as Context::reduce; also kNotInitialized before `init`.
/// \{
template <Element T>
Contributors reduce(std::span<T> data, Root root, ReduceOp op = ReduceOp::kSum) {
  return context().reduce(data, root, op);
}
template <detail::ContiguousRange R>
Contributors reduce(R&& data, Root root, ReduceOp op = ReduceOp::kSum) {
  return context().reduce(std::forward<R>(data), root, op);
}
inline Contributors reduce(TensorView data, Root root, ReduceOp op = ReduceOp::kSum,
                           CudaStream stream = {}) {
  return context().reduce(data, root, op, stream);
}
inline Contributors reduce(ConstTensorView in, TensorView out, Root root,
                           ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().reduce(in, out, root, op, stream);
}
/// \}

/// Context::scan of the default context.
/// \returns what Context::scan returns.
/// \throws Error as Context::scan; also kNotInitialized before `init`.
/// \{
template <Element T>
Contributors scan(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
  return context().scan(data, op);
}
template <detail::ContiguousRange R>
Contributors scan(R&& data, ReduceOp op = ReduceOp::kSum) {
  return context().scan(std::forward<R>(data), op);
}
inline Contributors scan(TensorView data, ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().scan(data, op, stream);
}
inline Contributors scan(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                         CudaStream stream = {}) {
  return context().scan(in, out, op, stream);
}
/// \}

/// Context::exscan of the default context.
/// \returns what Context::exscan returns.
/// \throws Error as Context::exscan; also kNotInitialized before `init`.
/// \{
template <Element T>
Contributors exscan(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
  return context().exscan(data, op);
}
template <detail::ContiguousRange R>
Contributors exscan(R&& data, ReduceOp op = ReduceOp::kSum) {
  return context().exscan(std::forward<R>(data), op);
}
inline Contributors exscan(TensorView data, ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
  return context().exscan(data, op, stream);
}
inline Contributors exscan(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                           CudaStream stream = {}) {
  return context().exscan(in, out, op, stream);
}
/// \}

/// Context::barrier of the default context.
/// \returns what Context::barrier returns.
/// \throws Error as Context::barrier; also kNotInitialized before `init`.
inline Contributors barrier() {
  return context().barrier();
}

/// Context::join of the default context.
/// \returns what Context::join returns.
/// \throws Error as Context::join; also kNotInitialized before `init`.
inline JoinOutcome join() {
  return context().join();
}

/// Context::run of the default context.
/// \returns what Context::run returns.
/// \throws Error as Context::run; also kNotInitialized before `init`.
inline RunOutcome run(State& state, const std::function<void()>& body) {
  return context().run(state, body);
}

}  // namespace elastic
