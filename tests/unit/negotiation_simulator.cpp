#include "tests/unit/negotiation_simulator.hpp"

#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

/// From this many ranks on not every event is drawn by itself, which would take too long.
constexpr std::size_t kMany = 100;

std::string text_of(const OrderItem& order) {
  if (order.last_joined) return "join " + std::to_string(*order.last_joined);
  if (order.is_mismatch()) return "!" + order.mismatch;
  std::string text;
  for (const auto& request : *order.requests) {
    if (!text.empty()) text += "+";
    text += request->name;
  }
  return text;
}

}  // namespace

NegotiationSimulator::NegotiationSimulator(int ranks, std::size_t bucket_bytes, unsigned seed,
                                           bool all_linked)
    : bucket_bytes_(bucket_bytes), random_(seed), all_linked_(all_linked) {
  for (int rank = 0; rank < ranks; ++rank) {
    workers_.push_back(std::make_unique<Worker>(bucket_bytes, rank % 2 == 0 ? "even/" : "odd/"));
  }
  for (std::size_t rank = 0; rank < size(); ++rank) enter_view(rank);
}

void NegotiationSimulator::enter_view(std::size_t rank) {
  Worker& worker = *workers_[rank];
  const int own = static_cast<int>(rank);
  const int ranks = static_cast<int>(size());
  worker.routes = NoteRoutes(own, ranks, all_linked_);
  worker.negotiator.restart(own, ranks, worker.routes.subtree().count);
}

void NegotiationSimulator::begin(const Program& program) {
  std::vector<Program> programs(size(), program);
  for (std::size_t rank = 1; rank < size(); ++rank) {
    std::shuffle(programs[rank].begin(), programs[rank].end(), random_);
  }
  begin_with(std::move(programs));
}

void NegotiationSimulator::begin_with(std::vector<Program> programs) {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    Worker& worker = *workers_[rank];
    worker.program.clear();
    std::ranges::copy_if(programs.at(rank), std::back_inserter(worker.program),
                         [&](const TensorRequest& request) { return makes(worker, request); });
    worker.blocked = false;
  }
}

void NegotiationSimulator::step(const Program& program) {
  begin(program);
  finish();
}

void NegotiationSimulator::step_with(std::vector<Program> programs) {
  begin_with(std::move(programs));
  finish();
}

/// Whether the request is of all ranks, or of a group that the worker is in.
bool NegotiationSimulator::makes(const Worker& worker, const TensorRequest& request) {
  return request.name.find('/') == std::string::npos || request.name.starts_with(worker.group);
}

/// The ranks that make the call; none if it is of all.
std::vector<int> NegotiationSimulator::group_of(const TensorRequest& request) const {
  std::vector<int> ranks;
  if (request.name.find('/') == std::string::npos) return ranks;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (makes(*workers_[rank], request)) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

bool NegotiationSimulator::Worker::waits() const {
  const TensorRequest& next = program.front();
  return outstanding.contains(next.name) || outstanding.contains(kJoin.name) ||
         (next == kJoin && !outstanding.empty());
}

void NegotiationSimulator::submit(Worker& worker, const TensorRequest& request) {
  if (request == kJoin) {
    EXPECT_TRUE(worker.negotiator.join(generation_).ok());
    return;
  }
  std::vector<int> ranks = group_of(request);
  const Status submitted = ranks.empty()
                               ? worker.negotiator.submit(request)
                               : worker.negotiator.submit(GroupRequest{request, std::move(ranks)});
  EXPECT_TRUE(submitted.ok()) << submitted.message();
}

bool NegotiationSimulator::complete() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->program.empty() && worker->outstanding.empty();
  });
}

std::vector<NegotiationSimulator::Event> NegotiationSimulator::possible() const {
  std::size_t entered_by_all = workers_.front()->entered();
  for (const auto& worker : workers_) entered_by_all = std::min(entered_by_all, worker->entered());
  std::vector<Event> events;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const Worker& worker = *workers_[rank];
    if (!worker.program.empty() && !worker.waits()) {
      events.push_back({Event::Kind::kSubmit, rank});
      if (random_flushes_ && rank > 0) events.push_back({Event::Kind::kFlush, rank});
      if (random_force_flushes_) events.push_back({Event::Kind::kForceFlush, rank});
    } else if (!worker.blocked) {
      events.push_back({Event::Kind::kBlock, rank});
    }
    if (worker.position < entered_by_all) events.push_back({Event::Kind::kComplete, rank});
  }
  for (const auto& [ends, notes] : links_) {
    if (!notes.empty()) events.push_back({Event::Kind::kDeliver, ends.second, ends.first});
  }
  return events;
}

bool NegotiationSimulator::advance(std::size_t events) {
  for (std::size_t i = 0; i < events; ++i) {
    const std::vector<Event> choices = possible();
    if (choices.empty()) return complete();
    happen(choices[random_() % choices.size()]);
  }
  return complete();
}

void NegotiationSimulator::let_nothing_happen_for_long() {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    at(rank).force_flush();
    pump(rank);
  }
}

void NegotiationSimulator::submit(std::size_t rank, const TensorRequest& request) {
  workers_.at(rank)->program.push_back(request);
  workers_.at(rank)->blocked = false;
}

bool NegotiationSimulator::finish() {
  while (true) {
    std::vector<Event> choices = possible();
    if (choices.empty()) break;
    if (size() < kMany) {
      happen(choices[random_() % choices.size()]);
    } else {  // one after the other: none makes another one impossible
      std::shuffle(choices.begin(), choices.end(), random_);
      for (const Event& event : choices) happen(event);
    }
  }
  if (complete()) return true;
  std::string text = "stuck:";
  for (const auto& worker : workers_) {
    text += " [";
    for (const auto& [name, request] : worker->outstanding) text += " " + name;
    text += " ]";
  }
  ADD_FAILURE() << text;
  return false;
}

void NegotiationSimulator::happen(const Event& event) {
  Worker& worker = *workers_[event.rank];
  switch (event.kind) {
    case Event::Kind::kSubmit: {
      TensorRequest request = std::move(worker.program.front());
      worker.program.pop_front();
      worker.blocked = false;
      submit(worker, request);
      worker.outstanding.emplace(request.name, request);
      break;
    }
    case Event::Kind::kBlock:
      worker.blocked = true;
      worker.negotiator.flush();
      break;
    case Event::Kind::kFlush:
      worker.negotiator.flush();
      break;
    case Event::Kind::kForceFlush:
      worker.negotiator.force_flush();
      break;
    case Event::Kind::kDeliver:
      deliver(event.from, event.rank);
      break;
    case Event::Kind::kComplete:
      complete(worker);
      break;
  }
  pump(event.rank);
}

void NegotiationSimulator::complete(Worker& worker) {
  const OrderItem order = std::move(worker.taken.front());
  worker.taken.pop_front();
  ++worker.position;
  for (const auto& request : *order.requests) {
    if (order.is_neutral || !makes(worker, *request)) continue;
    const auto at = worker.outstanding.find(request->name);
    if (at == worker.outstanding.end()) {
      ADD_FAILURE() << request->name << " is ordered and not submitted";
      continue;
    }
    EXPECT_EQ(at->second, *request);
    worker.outstanding.erase(at);
  }
  worker.history.push_back(text_of(order));
  const Status completed = worker.negotiator.completed(order);
  EXPECT_TRUE(completed.ok()) << completed.message();
}

void NegotiationSimulator::deliver(std::size_t from, std::size_t to) {
  auto& notes = links_[{from, to}];
  const std::vector<std::byte> note = std::move(notes.front());
  notes.pop_front();
  Worker& worker = *workers_[to];
  ++worker.read;
  const auto arrived = worker.routes.arrive(static_cast<int>(from), note);
  ASSERT_TRUE(arrived.ok()) << arrived.status().message();
  for (const int next : arrived.value().pass_to) send(to, next, note);
  const Status taken = worker.negotiator.on_note(arrived.value().from, arrived.value().note);
  EXPECT_TRUE(taken.ok()) << taken.message();
}

void NegotiationSimulator::send(std::size_t from, int to, const std::vector<std::byte>& note) {
  ++workers_[from]->notes;
  links_[{from, static_cast<std::size_t>(to)}].push_back(note);
}

void NegotiationSimulator::pump(std::size_t rank) {
  Worker& worker = *workers_[rank];
  for (RanksNote& note : worker.negotiator.take_outgoing()) {
    const std::vector<std::byte> wrapped = worker.routes.wrap(std::move(note));
    for (const int to : worker.routes.targets()) send(rank, to, wrapped);
  }
  for (OrderItem& order : worker.negotiator.take_orders()) worker.taken.push_back(std::move(order));
}

void NegotiationSimulator::change_view(const std::vector<std::size_t>& survivors,
                                       std::size_t joiners) {
  std::vector<std::unique_ptr<Worker>> members;
  for (const std::size_t rank : survivors) members.push_back(std::move(workers_.at(rank)));
  links_.clear();
  ++generation_;
  std::size_t position = 0;
  for (const auto& member : members) position = std::max(position, member->position);
  for (auto& member : members) {
    while (member->position < position) complete(*member);
    member->taken.clear();
  }
  for (std::size_t i = 0; i < joiners; ++i) {
    members.push_back(std::make_unique<Worker>(bucket_bytes_, "none/"));
    Worker& joiner = *members.back();
    const Worker& model = *members.front();
    joiner.position = position;
    joiner.history = model.history;
    for (const auto& [name, request] : model.outstanding) {
      if (makes(joiner, request)) joiner.program.push_back(request);
    }
    std::ranges::copy_if(model.program, std::back_inserter(joiner.program),
                         [&](const TensorRequest& request) { return makes(joiner, request); });
    joiner.blocked = false;
  }
  workers_ = std::move(members);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    enter_view(rank);
    Worker& worker = *workers_[rank];
    for (const auto& [name, request] : worker.outstanding) {
      if (!group_of(request).empty()) submit(worker, request);
    }
    pump(rank);
  }
}

std::vector<std::string> NegotiationSimulator::take_history() {
  std::vector<std::string> history = workers_.front()->history;
  for (auto& worker : workers_) {
    EXPECT_EQ(worker->history, history);
    worker->history.clear();
  }
  return history;
}

std::vector<std::size_t> NegotiationSimulator::take_note_counts() {
  std::vector<std::size_t> counts;
  for (auto& worker : workers_) counts.push_back(std::exchange(worker->notes, 0));
  return counts;
}

std::vector<std::size_t> NegotiationSimulator::take_read_counts() {
  std::vector<std::size_t> counts;
  for (auto& worker : workers_) counts.push_back(std::exchange(worker->read, 0));
  return counts;
}

TensorRequest floats(std::string name, std::uint64_t count, ReduceOp op) {
  return {std::move(name), kAllreduceRequest, op, {{DType::kF32, count}}};
}

NegotiationSimulator::Program varied_program(std::size_t size) {
  NegotiationSimulator::Program program;
  for (std::size_t i = 0; i < size; ++i) {
    TensorRequest request = floats("t" + std::to_string(i), 1 + i * 7 % 13,
                                   i % 5 == 0 ? ReduceOp::kMax : ReduceOp::kSum);
    if (i % 4 == 0) request.tensors.push_back({DType::kF64, i % 3});
    program.push_back(std::move(request));
  }
  return program;
}

NegotiationSimulator::Program with_group_calls(NegotiationSimulator::Program program,
                                               std::size_t calls) {
  for (std::size_t i = 0; i < calls; ++i) {
    const std::string group = i % 2 == 0 ? "even/" : "odd/";
    program.insert(program.begin() + static_cast<std::ptrdiff_t>(i * 2),
                   floats(group + std::to_string(i), i));
  }
  return program;
}

std::multiset<std::string> as_set(const std::vector<std::string>& history) {
  return {history.begin(), history.end()};
}

}  // namespace elastic::coordinator
