#include "model_linker.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "data_stream.hpp"
#include "model_worker.hpp"

namespace elastic::simulation {

namespace {

/// The deadline of runtime::ParticipationEffects.
constexpr Milliseconds kLinkDeadline{5000};
/// The longest pause between two attempts to reach a peer.
constexpr Milliseconds kLongestRedial{10};

}  // namespace

/// The source of the links of one view and lane. Passes the requests on to the control thread.
class ModelLinker::Source final : public transport::LinkSource {
 public:
  Source(ModelLinker& linker, std::vector<std::string> incarnations, std::size_t lane,
         std::uint64_t generation)
      : linker_(linker),
        incarnations_(std::move(incarnations)),
        lane_(lane),
        generation_(generation) {}

  void request(int rank, Arrived arrived) override {
    linker_.process_.post([&linker = linker_, peer = incarnations_[static_cast<std::size_t>(rank)],
                           lane = lane_, generation = generation_, arrived = std::move(arrived)] {
      linker.request(peer, lane, generation, arrived);
    });
  }

 private:
  ModelLinker& linker_;
  const std::vector<std::string> incarnations_;
  const std::size_t lane_;
  const std::uint64_t generation_;
};

ModelLinker::ModelLinker(Process& process, std::size_t lanes)
    : process_(process), pool_(static_cast<int>(lanes)) {}

std::shared_ptr<transport::LinkSource> ModelLinker::source(std::vector<std::string> incarnations,
                                                           std::size_t lane,
                                                           std::uint64_t generation) {
  return std::make_shared<Source>(*this, std::move(incarnations), lane, generation);
}

void ModelLinker::connect(std::vector<transport::Peer> peers, std::uint64_t generation,
                          Connected callback) {
  cancel();
  peers_ = std::move(peers);
  callback_ = std::move(callback);
  generation_ = std::max(generation_, generation);
  connect_until_ = process_.context().time.now() + kLinkDeadline;
  std::set<std::string> names;
  for (const transport::Peer& peer : peers_) names.insert(peer.incarnation);
  pool_.keep_only(names);
  pool_.drop_dead();
  for (const transport::Peer& peer : peers_) {
    if (peer.renew) pool_.drop_old(peer.incarnation, generation_);
  }
  try_to_connect(connecting_);
}

void ModelLinker::cancel() {
  ++connecting_;
  callback_ = nullptr;
  peers_.clear();
  for (const RequestPtr& request : std::exchange(requests_, {})) request->answered = true;
}

void ModelLinker::accept(transport::LinkPool::Arrival arrival) {
  // A task can be copied, a stream cannot.
  auto shared = std::make_shared<transport::LinkPool::Arrival>(std::move(arrival));
  process_.post([this, shared] {
    pool_.add(std::move(*shared));
    answer_requests();
  });
}

/// Between two workers, the one with the greater name dials.
bool ModelLinker::dials(const std::string& incarnation) const {
  return process_.incarnation() > incarnation;
}

/// Has no effect where nothing gets through, or the peer is in a later view.
void ModelLinker::dial(const std::string& incarnation, std::size_t lane) {
  SimContext& context = process_.context();
  const std::string& self = process_.incarnation();
  const Node peer = node_of(incarnation);
  if (pool_.find(incarnation, lane) || !context.network.meet(process_.self(), peer) ||
      !context.workers[peer]->answers() || !context.workers[peer]->linker().accepts(generation_))
    return;
  auto streams = connect_data(context.network, context.chance, process_.self(), peer);
  const std::string id = self + "-" + std::to_string(context.network.connections());
  context.workers[peer]->linker().accept(
      {self, lane, id, 0, 1, "", generation_, std::move(streams.second)});
  pool_.add({incarnation, lane, id, 0, 1, "", generation_, std::move(streams.first)});
}

/// Dials the missing peers that are to be linked at once.
void ModelLinker::try_to_connect(std::uint64_t attempt) {
  if (attempt != connecting_) return;
  const transport::Peer* missing = nullptr;
  for (const transport::Peer& peer : peers_) {
    if (!peer.at_once || pool_.complete(peer.incarnation)) continue;
    missing = &peer;
    if (!dials(peer.incarnation)) continue;
    for (std::size_t lane = 0; lane < kLanes; ++lane) dial(peer.incarnation, lane);
  }
  if (missing == nullptr) {
    std::vector<LinksOfPeer> links;
    for (const transport::Peer& peer : peers_) {
      links.push_back(peer.at_once ? pool_.hand_out(peer.incarnation) : LinksOfPeer());
    }
    return std::exchange(callback_, nullptr)(std::move(links));
  }
  if (process_.context().time.now() >= connect_until_) {
    const auto index = static_cast<int>(missing - peers_.data());
    const Connected callback = std::exchange(callback_, nullptr);
    cancel();
    return callback(Status(Code::kTimeout, "no answer", index));
  }
  process_.later(Milliseconds(0), kLongestRedial, [this, attempt] { try_to_connect(attempt); });
}

/// Models Linker::Impl::request: both ends ask, the one that dials has a deadline.
void ModelLinker::request(const std::string& incarnation, std::size_t lane,
                          std::uint64_t generation, transport::LinkSource::Arrived callback) {
  const bool known =
      std::ranges::find(peers_, incarnation, &transport::Peer::incarnation) != peers_.end();
  if (!known || generation != generation_ || callback_) return;  // of an earlier view
  ++process_.context().tally.later_links;
  const auto request =
      std::make_shared<Request>(Request{incarnation, lane, std::move(callback),
                                        process_.context().time.now() + kLinkDeadline, false});
  requests_.push_back(request);
  pool_.drop_dead(incarnation);
  const bool is_mutated = process_.context().scenario.mutation == Mutation::kUndialedLink;
  dials(incarnation) && !is_mutated ? try_to_answer(request) : answer_requests();
}

/// Dials until the link is there, the deadline has passed, or the view has ended.
void ModelLinker::try_to_answer(const RequestPtr& request) {
  if (request->answered) return;
  dial(request->peer, request->lane);
  answer_requests();
  if (request->answered) return;
  if (process_.context().time.now() >= request->until) {
    ++process_.context().tally.later_links_failed;
    return answer(request, Status(Code::kTimeout, "no answer"));
  }
  process_.later(Milliseconds(0), kLongestRedial, [this, request] { try_to_answer(request); });
}

void ModelLinker::answer_requests() {
  for (const RequestPtr& request : std::vector<RequestPtr>(requests_)) {
    if (!pool_.find(request->peer, request->lane)) continue;
    answer(request, pool_.hand_out(request->peer, request->lane));
  }
}

void ModelLinker::answer(const RequestPtr& request, Result<transport::LinkPtr> outcome) {
  std::erase(requests_, request);
  request->answered = true;
  request->callback(std::move(outcome));
}

}  // namespace elastic::simulation
