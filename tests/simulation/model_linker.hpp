#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/link_pool.hpp"
#include "collectives/transport/link_source.hpp"
#include "collectives/transport/peer.hpp"
#include "process.hpp"

namespace elastic::simulation {

/// Stands for transport::Linker, over a real LinkPool: a connection is made in no time where the
/// network lets it through, and is tried again otherwise. Belongs to the control thread, but for
/// `accepts` and `accept`, which its peers call, and the requests of a source, which are posted.
class ModelLinker {
 public:
  using LinksOfPeer = std::vector<transport::LinkPtr>;
  /// As Linker::Connected.
  using Connected = std::function<void(Result<std::vector<LinksOfPeer>>)>;

  ModelLinker(Process& process, std::size_t lanes);

  void connect(std::vector<transport::Peer> peers, std::uint64_t generation, Connected callback);
  void cancel();
  /// As Linker::source. It must not outlive this.
  std::shared_ptr<transport::LinkSource> source(std::vector<std::string> incarnations,
                                                std::size_t lane, std::uint64_t generation);

  /// Whether it lets a worker in that makes links for the view `generation`.
  bool accepts(std::uint64_t generation) const { return generation >= generation_; }
  /// The other end of a link was made by a worker that dialed this one.
  void accept(transport::LinkPool::Arrival arrival);

 private:
  class Source;

  /// A link that was asked for after `connect`.
  struct Request {
    std::string peer;
    std::size_t lane = 0;
    transport::LinkSource::Arrived callback;
    TimePoint until{};
    bool answered = false;  // or given up
  };
  using RequestPtr = std::shared_ptr<Request>;

  void try_to_connect(std::uint64_t attempt);
  void request(const std::string& incarnation, std::size_t lane, std::uint64_t generation,
               transport::LinkSource::Arrived callback);
  void try_to_answer(const RequestPtr& request);
  void answer_requests();
  void answer(const RequestPtr& request, Result<transport::LinkPtr> outcome);
  bool dials(const std::string& incarnation) const;
  void dial(const std::string& incarnation, std::size_t lane);

  Process& process_;
  transport::LinkPool pool_;
  std::uint64_t generation_ = 0;  // of the last call of `connect`
  std::vector<transport::Peer> peers_;
  Connected callback_;            // null once it is answered
  std::uint64_t connecting_ = 0;  // counts attempts; all but the last are cancelled
  TimePoint connect_until_{};
  std::vector<RequestPtr> requests_;  // not answered yet
};

}  // namespace elastic::simulation
