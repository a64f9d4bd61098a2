#include "model_worker.hpp"

#include <utility>

#include "data_links.hpp"
#include "oracle.hpp"

namespace elastic::simulation {

using namespace rendezvous;
using runtime::Participation;

namespace {

constexpr Milliseconds kLinkDeadline{5000};

}  // namespace

ModelWorker::ModelWorker(Node self, Around& around)
    : around_(around),
      process_(self, around),
      lanes_{make_lane(0), make_lane(1)},
      trainer_(process_,
               {[this](std::size_t lane) { lanes_[lane].call(); },
                [this](std::uint64_t round) { participation_.on_paused(round); },
                [this] { return view_.admitted_at; }, [this](bool done) { leave(done); }}),
      client_(process_, {[this] {
                           Register identity;
                           identity.incarnation = incarnation();
                           return participation_.registration(std::move(identity));
                         },
                         [this] { return participation_.heartbeat(); },
                         [this](const Message& message) { on_message(message); },
                         [this] { participation_.on_disconnected(); }}),
      participation_(process_.incarnation(), kLanes, *this) {}

ModelLane ModelWorker::make_lane(std::size_t index) {
  return ModelLane(
      process_, index,
      {[this, index](std::uint64_t position, std::string needs) {
         participation_.on_quiet(index, {position, std::move(needs)});
       },
       [this](std::uint64_t generation, Node peer) {
         participation_.suspect({generation, incarnation_of(peer), "the link is broken"});
       },
       [this, index] { trainer_.on_done(index); }});
}

void ModelWorker::note(const std::string& what) const {
  around_.trace.line(incarnation(), [&] { return what; });
}

void ModelWorker::kill() {
  if (over()) return;
  note("is killed");
  killed_ = true;
  exit(around_.chance.percent(50));
}

void ModelWorker::exit(bool unsent_is_lost) {
  process_.end();
  client_.end(unsent_is_lost);
  around_.links.end(process_.self());
}

void ModelWorker::pause(Duration length) {
  if (over() || process_.asleep()) return;
  note("is stopped");
  process_.sleep();
  around_.time.after(length, [this] {
    if (over()) return;
    note("continues");
    process_.wake();
  });
}

void ModelWorker::suspect(Node peer) {
  if (!answers()) return;
  participation_.suspect({generation(), incarnation_of(peer), "it seemed so"});
}

void ModelWorker::receive(std::size_t lane, const Frame& frame) {
  process_.when_awake([this, lane, frame] { lanes_[lane].receive(frame); });
}

void ModelWorker::receive(const Connection& connection, const Message& message) {
  process_.when_awake([this, &connection, message] { client_.receive(connection, message); });
}

void ModelWorker::link_lost(std::size_t lane, Node peer) {
  process_.when_awake([this, lane, peer] { lanes_[lane].link_lost(peer); });
}

void ModelWorker::on_message(const Message& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    participation_.on_welcome();
    if (!welcome->joining || !around_.scenario.uses_run || std::exchange(ready_, true)) return;
    process_.later(Milliseconds(1), Milliseconds(50), [this] { participation_.ready({}); });
  } else if (const auto* freeze = std::get_if<Freeze>(&message)) {
    participation_.on_freeze(*freeze);
  } else if (const auto* announce = std::get_if<Announce>(&message)) {
    participation_.on_announce(announce->view);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    on_farewell(*farewell);
  } else if (const auto* fail = std::get_if<Fail>(&message)) {
    note("ends: " + fail->reason);
    exit(false);
  } else if (const auto* refuse = std::get_if<Refuse>(&message)) {
    note("is refused: " + refuse->reason);
    exit(false);
  }
}

void ModelWorker::on_farewell(const Farewell& farewell) {
  note("may go: " + farewell.text);
  exit(false);
  if (farewell.reason == Farewell::Reason::kEvicted && around_.scenario.uses_run) {
    around_.rejoin(process_.self());
  }
}

/// Who leaves early does not wait to be told that it may.
void ModelWorker::leave(bool done) {
  note(done ? "is at the job's end" : "leaves");
  participation_.bye(done);
  if (!done && around_.chance.percent(50)) exit(false);
}

void ModelWorker::send(const Message& message) {
  if (const auto* report = std::get_if<Report>(&message)) {
    around_.trace.line(incarnation(), [&] {
      std::string text = "reports for round " + std::to_string(report->round) + " of generation " +
                         std::to_string(report->generation) + ":";
      for (const auto& lane : report->lanes) {
        text += " " + std::to_string(lane.position) +
                (lane.needs.empty() ? "" : " needs " + lane.needs);
      }
      return text;
    });
  }
  client_.send(message);
}

void ModelWorker::freeze_lanes() {
  for (ModelLane& lane : lanes_) lane.freeze();
}

void ModelWorker::begin_lanes_at(const std::vector<std::uint64_t>& positions) {
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i].begin_at(positions[i]);
}

void ModelWorker::connect(const View& view) {
  next_ = view;
  link_until_ = around_.time.now() + kLinkDeadline;
  try_to_link(++linking_);
}

/// Dials every member to which there is no link, until all are there or it has taken too long.
void ModelWorker::try_to_link(std::uint64_t attempt) {
  if (attempt != linking_) return;
  for (const Member& member : next_.members) {
    const Node peer = node_of(member.incarnation);
    if (peer == process_.self() || around_.links.whole(process_.self(), peer)) continue;
    if (around_.network.meet(process_.self(), peer) && around_.workers[peer]->answers()) {
      around_.links.make(process_.self(), peer);
      continue;
    }
    if (around_.time.now() >= link_until_) {
      return participation_.on_unlinkable(next_.generation, member.incarnation, "no answer");
    }
    return process_.later(Milliseconds(20), Milliseconds(60),
                          [this, attempt] { try_to_link(attempt); });
  }
  process_.later(Milliseconds(0), Milliseconds(5), [this, attempt] {
    if (attempt == linking_) participation_.on_linked(next_.generation);
  });
}

void ModelWorker::install(const View& view) {
  note("is in view " + std::to_string(view.generation));
  around_.oracle.installed(process_.self(), view_.generation, view);
  const bool first = view_.generation == 0;
  view_ = view;
  for (ModelLane& lane : lanes_) lane.install(view);
  if (!first) return;
  if (around_.scenario.uses_run && !std::exchange(ready_, true)) participation_.ready({});
  trainer_.start();
}

Participation::Promise ModelWorker::propose(std::uint64_t round, std::uint64_t at_commit) {
  return trainer_.propose(round, at_commit);
}

std::vector<std::uint64_t> ModelWorker::positions() const {
  std::vector<std::uint64_t> positions;
  for (const ModelLane& lane : lanes_) positions.push_back(lane.position());
  return positions;
}

void ModelWorker::end(const Status& reason) {
  around_.oracle.wrong(incarnation() + " ends: " + reason.message());
}

std::string ModelWorker::describe() const {
  std::string text =
      incarnation() + ": generation " + std::to_string(generation()) + ", " + trainer_.describe();
  for (const ModelLane& lane : lanes_) text += ", " + lane.describe();
  if (killed_) text += ", killed";
  if (over()) text += ", over";
  if (process_.asleep()) text += ", asleep";
  if (view_.generation != generation()) text += ", installing";
  return text;
}

}  // namespace elastic::simulation
