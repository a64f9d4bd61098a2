#include "benchmarks/collective/collective.hpp"
namespace elastic::bench {

namespace {

/// The part of `tensor` with `count` elements from element `first` on.
TensorView part_of(const TensorView& tensor, std::size_t first, std::size_t count) {
  return {static_cast<std::byte*>(tensor.data) + first * size_of(tensor.dtype), count, tensor.dtype,
          tensor.device};
}

/// The block of the input that belongs to one rank, if all have the same size: the first.
TensorView block_of(const CallData& data) {
  return part_of(data.input, 0, data.input.count / static_cast<std::size_t>(data.ranks));
}

/// The number of wrong elements in an output that has a block of each rank's input, from its
/// element `first` on.
std::int64_t count_wrong_blocks(const CallData& data, std::size_t first = 0) {
  const std::size_t count = block_of(data).count;
  std::int64_t wrong = 0;
  for (int rank = 0; rank < data.ranks; ++rank) {
    const std::size_t at = static_cast<std::size_t>(rank) * count;
    wrong += data.pattern.count_unlike_input(part_of(data.output, at, count), rank, first);
  }
  return wrong;
}

class Allreduce : public Collective {
 public:
  bool reduces() const override { return true; }
  bool offers(Placement) const override { return true; }
  double bus_factor(int ranks) const override { return 2.0 * (ranks - 1) / ranks; }
  std::size_t granularity(int) const override { return 1; }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement placement) override {
    return context.allreduce(data.input, result(data, placement), data.op, data.stream);
  }
  CallTensors tensors(const CallData& data, Placement placement) override {
    return {data.input, result(data, placement)};
  }
  std::int64_t count_wrong(const CallData& data, Placement placement) const override {
    return data.pattern.count_wrong(result(data, placement));
  }

 private:
  static TensorView result(const CallData& data, Placement placement) {
    return placement == Placement::kInPlace ? data.input : data.output;
  }
};

/// The time includes the copy of the result to the caller's tensor.
class AllGather : public Collective {
 public:
  bool reduces() const override { return false; }
  bool offers(Placement placement) const override { return placement == Placement::kOutOfPlace; }
  double bus_factor(int ranks) const override { return 1.0 * (ranks - 1) / ranks; }
  std::size_t granularity(int ranks) const override { return static_cast<std::size_t>(ranks); }
  void fill(const CallData& data) const override { data.pattern.fill(block_of(data), data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.allgather(block_of(data), data.output, data.stream).contributors;
  }
  CallTensors tensors(const CallData& data, Placement) override {
    return {block_of(data), data.output};
  }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    return count_wrong_blocks(data);
  }
};

/// The time includes the copy of the part to the caller's tensor.
class ReduceScatter : public Collective {
 public:
  bool reduces() const override { return true; }
  bool offers(Placement placement) const override { return placement == Placement::kOutOfPlace; }
  double bus_factor(int ranks) const override { return 1.0 * (ranks - 1) / ranks; }
  std::size_t granularity(int ranks) const override { return static_cast<std::size_t>(ranks); }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.reduce_scatter(data.input, part(data), data.op, data.stream).contributors;
  }
  CallTensors tensors(const CallData& data, Placement) override { return {data.input, part(data)}; }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    return data.pattern.count_wrong(part(data), first(data));
  }

 private:
  /// This rank's part, at its place in the output.
  static TensorView part(const CallData& data) {
    return part_of(data.output, first(data), count(data));
  }
  static std::size_t first(const CallData& data) {
    return static_cast<std::size_t>(data.rank) * count(data);
  }
  static std::size_t count(const CallData& data) {
    return data.input.count / static_cast<std::size_t>(data.ranks);
  }
};

class Broadcast : public Collective {
 public:
  bool reduces() const override { return false; }
  bool offers(Placement placement) const override { return placement == Placement::kInPlace; }
  double bus_factor(int) const override { return 1; }
  std::size_t granularity(int) const override { return 1; }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.broadcast(data.input, kRoot, data.stream);
  }
  CallTensors tensors(const CallData& data, Placement) override { return {data.input, data.input}; }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    return data.pattern.count_unlike_input(data.input, kRoot);
  }
};

/// Blocks of equal size. The time includes the copies between the library and the caller's tensors,
/// here and below.
class AllToAll : public Collective {
 public:
  bool reduces() const override { return false; }
  bool offers(Placement placement) const override { return placement == Placement::kOutOfPlace; }
  double bus_factor(int ranks) const override { return 1.0 * (ranks - 1) / ranks; }
  std::size_t granularity(int ranks) const override { return static_cast<std::size_t>(ranks); }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.alltoall({data.input}, data.output, data.stream).contributors;
  }
  CallTensors tensors(const CallData& data, Placement) override {
    return {data.input, data.output};
  }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    return count_wrong_blocks(data, static_cast<std::size_t>(data.rank) * block_of(data).count);
  }
};

class Gather : public Collective {
 public:
  bool reduces() const override { return false; }
  bool offers(Placement placement) const override { return placement == Placement::kOutOfPlace; }
  double bus_factor(int ranks) const override { return 1.0 * (ranks - 1) / ranks; }
  std::size_t granularity(int ranks) const override { return static_cast<std::size_t>(ranks); }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.gather(block_of(data), data.output, kRoot, data.stream).contributors;
  }
  CallTensors tensors(const CallData& data, Placement) override {
    return {block_of(data), data.output};
  }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    if (data.rank != kRoot) return 0;
    return count_wrong_blocks(data);
  }
};

class Scatter : public Collective {
 public:
  bool reduces() const override { return false; }
  bool offers(Placement placement) const override { return placement == Placement::kOutOfPlace; }
  double bus_factor(int ranks) const override { return 1.0 * (ranks - 1) / ranks; }
  std::size_t granularity(int ranks) const override { return static_cast<std::size_t>(ranks); }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.scatter({data.input}, part(data), kRoot, data.stream).contributors;
  }
  CallTensors tensors(const CallData& data, Placement) override { return {data.input, part(data)}; }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    const std::size_t first = static_cast<std::size_t>(data.rank) * part(data).count;
    return data.pattern.count_unlike_input(part(data), kRoot, first);
  }

 private:
  static TensorView part(const CallData& data) {
    return part_of(data.output, 0, block_of(data).count);
  }
};

class Reduce : public Collective {
 public:
  bool reduces() const override { return true; }
  bool offers(Placement placement) const override { return placement == Placement::kOutOfPlace; }
  double bus_factor(int) const override { return 1; }
  std::size_t granularity(int) const override { return 1; }
  void fill(const CallData& data) const override { data.pattern.fill(data.input, data.rank); }
  Contributors run(Context& context, const CallData& data, Placement) override {
    return context.reduce(data.input, data.output, kRoot, data.op, data.stream);
  }
  CallTensors tensors(const CallData& data, Placement) override {
    return {data.input, data.output};
  }
  std::int64_t count_wrong(const CallData& data, Placement) const override {
    return data.rank == kRoot ? data.pattern.count_wrong(data.output) : 0;
  }
};

}  // namespace

std::vector<std::string> collective_names() {
  return {"allreduce", "all_gather", "reduce_scatter", "broadcast",
          "alltoall",  "gather",     "scatter",        "reduce"};
}

std::unique_ptr<Collective> make_collective(const std::string& name) {
  if (name == "all_gather") return std::make_unique<AllGather>();
  if (name == "reduce_scatter") return std::make_unique<ReduceScatter>();
  if (name == "broadcast") return std::make_unique<Broadcast>();
  if (name == "alltoall") return std::make_unique<AllToAll>();
  if (name == "gather") return std::make_unique<Gather>();
  if (name == "scatter") return std::make_unique<Scatter>();
  if (name == "reduce") return std::make_unique<Reduce>();
  return std::make_unique<Allreduce>();
}

}  // namespace elastic::bench
