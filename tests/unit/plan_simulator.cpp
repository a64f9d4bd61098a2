#include "plan_simulator.hpp"

#include <algorithm>
#include <cstring>

namespace elastic::plan {

Simulator::Simulator(std::vector<Plan> plans, DType dtype, ReduceOp op, std::uint64_t seed)
    : plans_(std::move(plans)),
      element_(size_of(dtype)),
      reduce_(kernels::reduce(dtype, op)),
      random_(seed),
      data_(plans_.size()),
      ranks_(plans_.size()),
      channels_(plans_.size() * plans_.size()),
      buffered_(random_() % 3 != 0),
      started_(plans_.size(), ~std::size_t{0}),
      finished_(plans_.size(), 0) {
  for (int rank = 0; rank < static_cast<int>(plans_.size()); ++rank) {
    const Plan& plan = plans_[at(rank)];
    scratch_.emplace_back(plan.scratch_bytes);
    ranks_[at(rank)].done.resize(plan.steps.size());
    ranks_[at(rank)].left = plan.steps.size();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.steps.size()); ++i) {
      const Step& now = step(rank, i);
      switch (now.kind) {
        case Step::Kind::kSend:
          channel(rank, now.peer).sends.push_back(i);
          break;
        case Step::Kind::kReceive:
        case Step::Kind::kReceiveReduce:
        case Step::Kind::kReduceReceived:
          channel(now.peer, rank).receives.push_back(i);
          break;
        default:
          ranks_[at(rank)].local.push_back(i);
      }
    }
  }
  for (Channel& each : channels_) each.lazy = random_() % 4 == 0;
}

bool Simulator::may_start(int rank, std::int32_t index) const {
  for (const std::int32_t before : step(rank, index).after) {
    if (before != Step::kNone && !ranks_[at(rank)].done[static_cast<std::size_t>(before)]) {
      return false;
    }
  }
  return true;
}

void Simulator::complete(int rank, std::int32_t index) {
  ranks_[at(rank)].done[static_cast<std::size_t>(index)] = true;
  if (--ranks_[at(rank)].left == 0) finished_[at(rank)] = now_;
}

std::byte* Simulator::address(int rank, const Range& range) {
  auto& area = range.area == Area::kScratch ? scratch_[at(rank)] : data_[at(rank)];
  return area.data() + range.offset;
}

std::byte* Simulator::source(int rank, const Range& range) {
  if (range.area != Area::kInput || input_.empty()) return address(rank, range);
  return input_[at(rank)].data() + range.offset;
}

void Simulator::separate_input() {
  input_ = data_;
  for (auto& data : data_) std::fill(data.begin(), data.end(), std::byte{0xa5});
}

void Simulator::undo() {
  for (const Overwritten& each : overwritten_) {
    std::copy(each.content.begin(), each.content.end(), each.at);
  }
}

Range Simulator::half(const Range& range, std::size_t which) const {
  const std::size_t first = range.bytes / element_ / 2 * element_;
  return which == 0 ? Range{range.area, range.offset, first}
                    : Range{range.area, range.offset + first, range.bytes - first};
}

bool Simulator::can_copy(int from, int to) {
  const Channel& through = channel(from, to);
  return through.copied < 2 * through.sends.size() &&
         may_start(from, through.sends[through.copied / 2]);
}

bool Simulator::can_apply(int from, int to) {
  const Channel& through = channel(from, to);
  if (through.applied == 2 * through.receives.size()) return false;
  if (!may_start(to, through.receives[through.applied / 2])) return false;
  return !through.halves.empty() || can_copy(from, to);
}

std::vector<Simulator::Action> Simulator::possible(bool lazy) {
  std::vector<Action> actions;
  const int size = static_cast<int>(plans_.size());
  for (int rank = 0; rank < size; ++rank) {
    const auto& local = ranks_[at(rank)].local;
    if (std::any_of(local.begin(), local.end(), [&](auto i) { return may_start(rank, i); })) {
      actions.push_back({Action::Kind::kLocal, rank, 0, 0});
    }
    for (int to = 0; to < size; ++to) {
      Channel& through = channel(rank, to);
      if (through.lazy && !lazy) continue;
      if (buffered_ && through.halves.size() < kCapacity && can_copy(rank, to)) {
        actions.push_back({Action::Kind::kCopy, 0, rank, to});
      }
      if (can_apply(rank, to)) actions.push_back({Action::Kind::kApply, 0, rank, to});
    }
  }
  return actions;
}

void Simulator::perform_local(int rank) {
  auto& local = ranks_[at(rank)].local;
  const auto ready =
      std::find_if(local.begin(), local.end(), [&](auto i) { return may_start(rank, i); });
  const std::int32_t index = *ready;
  local.erase(ready);
  const Step& now = step(rank, index);
  std::byte* const into = address(rank, now.into);
  const std::byte* const from = source(rank, now.from);
  if (now.into.bytes > 0 && now.kind == Step::Kind::kCopy) std::memmove(into, from, now.into.bytes);
  const std::size_t elements = now.into.bytes / element_;
  if (now.kind == Step::Kind::kReduce) reduce_(into, into, from, elements);
  if (now.kind == Step::Kind::kReduceFlipped) reduce_(into, from, into, elements);
  complete(rank, index);
}

void Simulator::copy(int from, int to) {
  Channel& through = channel(from, to);
  const std::int32_t index = through.sends[through.copied / 2];
  const Range range = half(step(from, index).from, through.copied % 2);
  const std::byte* const begin = source(from, range);
  through.halves.emplace_back(begin, begin + range.bytes);
  if (++through.copied % 2 == 0) complete(from, index);
  started_[at(from)] = std::min(started_[at(from)], now_);
}

void Simulator::apply(int from, int to) {
  Channel& through = channel(from, to);
  if (through.halves.empty()) copy(from, to);
  const std::int32_t index = through.receives[through.applied / 2];
  const Step& now = step(to, index);
  const Range range = half(now.into, through.applied % 2);
  const auto& arrived = through.halves.front();
  std::byte* const into = address(to, range);
  if (now.first_write) overwritten_.push_back({into, {into, into + range.bytes}});
  const std::byte* const operand = source(to, half(now.from, through.applied % 2));
  if (now.kind == Step::Kind::kReceiveReduce) {
    reduce_(into, operand, arrived.data(), range.bytes / element_);
  } else if (now.kind == Step::Kind::kReduceReceived) {
    reduce_(into, arrived.data(), operand, range.bytes / element_);
  } else if (range.bytes > 0) {
    std::memcpy(into, arrived.data(), range.bytes);
  }
  through.halves.pop_front();
  if (++through.applied % 2 == 0) complete(to, index);
}

void Simulator::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kLocal:
      return perform_local(action.rank);
    case Action::Kind::kCopy:
      return copy(action.from, action.to);
    case Action::Kind::kApply:
      return apply(action.from, action.to);
  }
}

std::string Simulator::check() const {
  const std::size_t size = plans_.size();
  for (std::size_t from = 0; from < size; ++from) {
    for (const Step& each : plans_[from].steps) {
      for (const Range& range : {each.from, each.into}) {
        const auto& area = range.area == Area::kScratch ? scratch_[from] : data_[from];
        if (range.offset + range.bytes > area.size()) return "a range beyond its area";
        if (range.offset % element_ != 0 || range.bytes % element_ != 0) return "a cut element";
      }
    }
    for (std::size_t to = 0; to < size; ++to) {
      const Channel& through = channels_[from * size + to];
      if (through.sends.size() != through.receives.size()) return "sends and receives differ";
      if (from == to && !through.sends.empty()) return "a message to oneself";
      for (std::size_t i = 0; i < through.sends.size(); ++i) {
        if (step(static_cast<int>(from), through.sends[i]).from.bytes !=
            step(static_cast<int>(to), through.receives[i]).into.bytes) {
          return "message sizes differ";
        }
      }
    }
  }
  return {};
}

std::string Simulator::stuck() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].left > 0) return "stuck: rank " + std::to_string(rank);
  }
  return {};
}

std::string Simulator::run(std::size_t most) {
  if (std::string wrong = check(); !wrong.empty()) return wrong;
  for (; now_ < most; ++now_) {
    auto actions = possible(false);
    if (actions.empty()) actions = possible(true);
    if (actions.empty()) return stuck();
    perform(actions[random_() % actions.size()]);
  }
  return {};
}

}  // namespace elastic::plan
