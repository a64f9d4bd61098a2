#include "calls.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <elastic/group.hpp>
#include <elastic/minloc.hpp>
#include <elastic/sparse_allreduce.hpp>
#include <elastic/step_group.hpp>

#include "oracle.hpp"

namespace storm {

namespace {

using elastic::Contributors;
using elastic::WorkerId;

constexpr std::array<std::size_t, 5> kSizes = {1, 60, 700, 9000, 100000};

std::size_t size_in(std::uint64_t step) {
  return kSizes[mix(step + 5) % kSizes.size()];
}
WorkerId self() {
  return elastic::context().id();
}
bool is_root(const Contributors& contributors) {
  return contributors.workers().front() == self();
}

/// Different on each worker.
std::size_t block_size(WorkerId worker, std::uint64_t step) {
  return mix(worker ^ step) % (1 + size_in(step));
}

/// The block that `from` gives `to`; in a gather to itself.
Values block(WorkerId from, WorkerId to, std::uint64_t step, std::size_t count) {
  return contribution(from, step ^ mix(to), count);
}

void append(Values& values, const Values& more) {
  values.insert(values.end(), more.begin(), more.end());
}

/// Blocks of `size(worker)` elements from each contributor, in their order.
template <typename Size>
void expect_blocks(const elastic::Gathered<std::int64_t>& gathered, std::uint64_t step,
                   const Size& size, WorkerId (*to)(WorkerId), const char* what) {
  Values right;
  std::size_t rank = 0;
  for (const WorkerId worker : gathered.contributors.workers()) {
    const std::size_t count = size(worker);
    if (gathered.counts.at(rank++) != count) wrong(std::string(what) + ": the size of a block");
    append(right, block(worker, to(worker), step, count));
  }
  if (gathered.values != right) wrong(std::string(what) + ": the values");
}

Contributors gathered(std::uint64_t step, const Contributors& /*to*/) {
  const auto size = [step](WorkerId worker) { return block_size(worker, step); };
  const auto itself = [](WorkerId worker) { return worker; };
  const Values mine = block(self(), self(), step, size(self()));
  const bool to_all = step % 2 == 0;
  const auto all = to_all ? elastic::context().allgather(std::span(mine))
                          : elastic::context().gather(std::span(mine), 0);
  if (to_all || is_root(all.contributors)) {
    expect_blocks(all, step, size, itself, to_all ? "allgather" : "gather");
  }
  return all.contributors;
}

Contributors exchanged(std::uint64_t step, const Contributors& to) {
  const bool equal = step % 2 == 0;
  const auto size = [&](WorkerId worker) {
    return equal ? size_in(step) / 3 : block_size(worker, step);
  };
  Values mine;
  for (const WorkerId worker : to.workers())
    append(mine, block(self(), worker, step, size(self())));
  const std::vector<std::size_t> counts(equal ? 0 : to.size(), size(self()));
  const auto all = elastic::context().alltoall(std::span<const std::int64_t>(mine), counts, to);
  expect_blocks(
      all, step, size, [](WorkerId) { return self(); }, "alltoall");
  return all.contributors;
}

Contributors broadcast(std::uint64_t step, const Contributors& /*to*/) {
  Values values = contribution(step, size_in(step));
  const Contributors members = elastic::broadcast(std::span(values), 0);
  if (values != contribution(members.workers().front(), step, values.size())) wrong("broadcast");
  return members;
}

Contributors scattered(std::uint64_t step, const Contributors& to) {
  const std::size_t size = 1 + size_in(step) / 3;
  Values mine;
  for (const WorkerId worker : to.workers()) append(mine, block(self(), worker, step, size));
  const auto part = elastic::context().scatter(std::span<const std::int64_t>(mine), 0, {}, to);
  const WorkerId root = part.contributors.workers().front();
  if (part.values != block(root, self(), step, size)) wrong("scatter");
  return part.contributors;
}

Contributors reduced(std::uint64_t step, const Contributors& /*to*/) {
  Values values = contribution(step, size_in(step));
  const Contributors members = elastic::reduce(std::span(values), 0);
  if (is_root(members))
    expect_sum(values, step, members, "reduce");
  else if (values != contribution(step, values.size()))
    wrong("reduce changed an input");
  return members;
}

Contributors reduced_and_scattered(std::uint64_t step, const Contributors& /*to*/) {
  const Values values = contribution(step, size_in(step));
  const auto part = elastic::context().reduce_scatter(std::span(values));
  expect_sum(part.values, step, part.contributors.workers(), "reduce_scatter", part.offset);
  return part.contributors;
}

Contributors scanned(std::uint64_t step, const Contributors& /*to*/) {
  Values values = contribution(step, size_in(step));
  const bool with_own = step % 2 == 0;
  const Contributors members =
      with_own ? elastic::scan(std::span(values)) : elastic::exscan(std::span(values));
  const auto workers = members.workers();
  const auto rank = static_cast<std::size_t>(std::ranges::find(workers, self()) - workers.begin());
  expect_sum(values, step, workers.first(rank + (with_own ? 1 : 0)), "scan");
  return members;
}

Contributors in_a_step(std::uint64_t step, const Contributors& /*to*/) {
  elastic::StepGroup group(elastic::context());
  std::array<Values, 3> tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = contribution(step + i, size_in(step + i));
    group.allreduce("gradient " + std::to_string(i), tensors[i]);
  }
  const Contributors members = group.wait();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    expect_sum(tensors[i], step + i, members, "a tensor of a step");
  }
  return members;
}

/// Calls of the even ranks and of the odd ones beside each other, and a call of all.
Contributors in_groups(std::uint64_t step, const Contributors& /*to*/) {
  elastic::Context& job = elastic::context();
  Values whole = contribution(step, size_in(step));
  for (const int first : {0, 1}) {
    elastic::Group& group = job.group(elastic::GroupRule::every(2, first));
    if (group.rank() < 0) continue;
    Values values = contribution(step + 1, size_in(step + 1));
    const Contributors members = group.allreduce_async("of a group", std::span(values)).wait();
    expect_sum(values, step + 1, members, "a group");
  }
  const Contributors members = elastic::allreduce(std::span(whole));
  expect_sum(whole, step, members, "beside groups");
  return members;
}

Contributors found(std::uint64_t step, const Contributors& /*to*/) {
  const std::size_t count = std::min<std::size_t>(size_in(step), 700);
  Values values = contribution(step, count);
  Values workers(count, static_cast<std::int64_t>(self() >> 1U));
  const Contributors members = elastic::minloc(elastic::context(), values, workers);
  for (std::size_t i = 0; i < count; ++i) {
    std::pair<std::int64_t, std::int64_t> least{INT64_MAX, 0};
    for (const WorkerId worker : members.workers()) {
      least = std::min(least, {value(worker, step, i), static_cast<std::int64_t>(worker >> 1U)});
    }
    if (least != std::pair(values[i], workers[i])) wrong("minloc");
  }
  return members;
}

/// Some rows of a tensor of 50, each of three elements.
Contributors of_sparse_rows(std::uint64_t step, const Contributors& /*to*/) {
  constexpr std::size_t kRows = 50;
  constexpr std::size_t kWidth = 3;
  const auto rows_of = [step](WorkerId worker) {
    Values rows;
    for (std::size_t row = 0; row < kRows; ++row) {
      if (mix(worker ^ step ^ row) % 4 == 0) rows.push_back(static_cast<std::int64_t>(row));
    }
    return rows;
  };
  const Values mine = rows_of(self());
  Values values;
  for (const auto row : mine)
    append(values, contribution(step + static_cast<std::uint64_t>(row), kWidth));
  const elastic::SparseRows sums = elastic::sparse_allreduce(
      elastic::context(),
      {mine, elastic::view(std::span<const std::int64_t>(values)), kWidth, kRows});
  Values right(kRows * kWidth);
  std::array<bool, kRows> given{};
  for (const WorkerId worker : sums.contributors.workers()) {
    for (const auto row : rows_of(worker)) {
      const auto at = static_cast<std::size_t>(row);
      given[at] = true;
      for (std::size_t i = 0; i < kWidth; ++i)
        right[at * kWidth + i] += value(worker, step + at, i);
    }
  }
  const auto* sum = reinterpret_cast<const std::int64_t*>(sums.values.data());
  std::size_t place = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    if (!given[row]) continue;
    if (sums.indices.at(place) != static_cast<std::int64_t>(row))
      wrong("a row of sparse_allreduce");
    if (!std::equal(sum + place * kWidth, sum + (place + 1) * kWidth, &right[row * kWidth])) {
      wrong("the values of sparse_allreduce");
    }
    ++place;
  }
  if (place != sums.indices.size()) wrong("the number of rows of sparse_allreduce");
  return sums.contributors;
}

/// Does what a worker that is gone makes impossible for this worker, and not for all.
template <typename Call>
void unless_lost(const Call& call) {
  try {
    call();
  } catch (const elastic::Error& error) {
    if (!error.retryable()) throw;
  }
}

/// Around a ring, to the next worker.
Contributors sent(std::uint64_t step, const Contributors& to) {
  elastic::Context& job = elastic::context();
  const auto workers = to.workers();
  if (workers.size() == 1) return elastic::barrier();
  const auto rank = static_cast<std::size_t>(std::ranges::find(workers, self()) - workers.begin());
  const WorkerId next = workers[(rank + 1) % workers.size()];
  const WorkerId previous = workers[(rank + workers.size() - 1) % workers.size()];
  const int tag = static_cast<int>(step % 1000);
  const Values mine = block(self(), next, step, size_in(step));
  Values theirs(mine.size());
  std::optional<elastic::Work> out;
  unless_lost([&] {
    out = job.send_async(elastic::view(std::span<const std::int64_t>(mine)),
                         elastic::Root::worker(next), tag);
  });
  unless_lost([&] {
    const auto in =
        job.recv(elastic::view(std::span(theirs)), elastic::Root::worker(previous), tag);
    if (in.count != mine.size() || theirs != block(previous, self(), step, mine.size())) {
      wrong("a message");
    }
  });
  if (out) unless_lost([&] { out->wait(); });
  return elastic::barrier();
}

}  // namespace

std::uint64_t other_call(std::uint64_t step, const elastic::Contributors& members) try {
  constexpr std::array kCalls = {
      &gathered, &exchanged, &broadcast, &scattered, &reduced,        &reduced_and_scattered,
      &scanned,  &in_a_step, &in_groups, &found,     &of_sparse_rows, &sent};
  const Contributors contributors = kCalls[mix(step + 9) % kCalls.size()](step, members);
  std::uint64_t number = contributors.generation();
  for (const WorkerId worker : contributors.workers()) number = mix(number ^ worker);
  return number;
} catch (const elastic::Error& error) {
  if (!error.retryable()) throw;
  return mix(static_cast<std::uint64_t>(error.code()));  // the root has died
}

}  // namespace storm
