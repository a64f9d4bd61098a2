// The unnamed calls of a program with a result that differs by rank.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "contribution.hpp"
#include "coordinator/block_operations.hpp"
#include "coordinator/reduction_operations.hpp"
#include "model_worker.hpp"
#include "oracle.hpp"
#include "outcome.hpp"
#include "program.hpp"

namespace elastic::simulation {

namespace {

/// A block says which worker gave it, to which one, and in which call.
constexpr std::size_t kBlock = 3;

std::vector<std::int64_t> numbers(std::span<const std::byte> bytes) {
  std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// The workers with a block for `target`. Errors are appended to `wrong`.
Nodes senders(const std::vector<std::int64_t>& blocks, std::int64_t target, std::int64_t salt,
              std::string& wrong) {
  Nodes counted;
  for (std::size_t at = 0; at + kBlock <= blocks.size(); at += kBlock) {
    const auto node = static_cast<Node>(blocks[at]);
    if (blocks[at] < 0 || node >= kMostWorkers || contains(counted, node)) {
      wrong += " a block is no worker's;";
      break;
    }
    if (blocks[at + 1] != target) wrong += " a block is another worker's;";
    if (blocks[at + 2] != salt) wrong += " a block is of another call;";
    counted |= only(node);
  }
  return counted;
}

}  // namespace

Status Program::alltoall(std::uint64_t step, std::uint64_t call) {
  const std::int64_t salt = salt_of(process_.context().scenario.seed, step, call);
  const Contributors to = worker_.members()->contributors();
  std::vector<std::int64_t> mine;
  for (const WorkerId worker : to.workers()) {
    mine.insert(mine.end(), {process_.self(), static_cast<std::int64_t>(worker), salt});
  }
  std::vector<std::int64_t> got;
  const bool ragged = drawn(process_.context().scenario.seed, step, call) % 2 == 0;
  const std::vector<std::size_t> sizes(ragged ? to.size() : 0, kBlock);
  coordinator::AlltoallOperation operation(
      {{mine.data(), mine.size(), DType::kI64, {}}, sizes, to}, ragged, {},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
        got = numbers(bytes);
      });
  Result<Contributors> outcome = Status();
  if (Status status = run_operation(operation, "an alltoall", outcome); !status.ok()) return status;
  std::string wrong;
  const Nodes counted =
      senders(got, static_cast<std::int64_t>(id_of(process_.self())), salt, wrong);
  if (counts()) {
    process_.context().oracle.check_data(process_.self(), "alltoall", counted,
                                         nodes_of(outcome.value()), wrong);
  }
  note_result(counted);
  return {};
}

/// To rank 0 of the present view.
Status Program::gather(std::uint64_t step, std::uint64_t call) {
  const std::int64_t salt = salt_of(process_.context().scenario.seed, step, call);
  const std::int64_t mine[kBlock] = {process_.self(), 0, salt};
  for (;;) {
    const auto members = worker_.members();
    std::vector<std::int64_t> got;
    bool is_root = false;
    coordinator::GatherOperation operation(
        {mine, kBlock, DType::kI64, {}}, coordinator::CallRoot(0, *members), {},
        [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
          got = numbers(bytes);
          is_root = true;
        });
    Result<Contributors> outcome = Status();
    const Status status = run_operation(operation, "a gather", outcome);
    if (status.code() == Code::kAborted) continue;
    if (status.code() == Code::kRootLost) {
      note_result(1);
      return {};
    }
    if (!status.ok()) return status;
    std::string wrong;
    if (is_root && counts()) {
      process_.context().oracle.check_data(process_.self(), "gather", senders(got, 0, salt, wrong),
                                           nodes_of(outcome.value()), wrong);
    }
    note_result(nodes_of(outcome.value()));
    return {};
  }
}

Status Program::scan(std::uint64_t step, std::uint64_t call) {
  const std::int64_t salt = salt_of(process_.context().scenario.seed, step, call);
  std::int64_t value = salt;
  coordinator::ScanOperation operation({&value, 1, DType::kI64, {}}, {&value, 1, DType::kI64, {}},
                                       ReduceOp::kSum, /*exclusive=*/false);
  Result<Contributors> outcome = Status();
  if (Status status = run_operation(operation, "a scan", outcome); !status.ok()) return status;
  const auto workers = outcome.value().workers();
  const auto self = std::ranges::find(workers, id_of(process_.self()));
  if (counts() && value != salt * (self - workers.begin() + 1)) {
    process_.context().oracle.wrong(process_.incarnation() + ": a scan's sum is wrong");
  }
  note_result(nodes_of(outcome.value()));
  return {};
}

}  // namespace elastic::simulation
