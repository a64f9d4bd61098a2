#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/secret.hpp"
#include "base/status.hpp"
#include "rendezvous/client/client.hpp"
#include "runtime/participation.hpp"

namespace elastic::bench {

/// How the members of a swarm reach their server.
struct SwarmServer {
  std::string address;
  std::string job;
  Secret secret;
  std::shared_ptr<rendezvous::Unpacking> unpacking;
};

/// A worker without a data plane: the real client of the rendezvous server, and the real
/// Participation. They act on the least that answers them: lanes without operations,
/// links that are there as soon as they are wanted, and a training thread that reaches each step
/// boundary at once.
///
/// Lives on one io_context, whose thread calls every function. The end of the object is the death
/// of the worker.
class SwarmMember final : public std::enable_shared_from_this<SwarmMember>,
                          private runtime::Participation::Effects {
 public:
  /// Watches the members.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void on_connected(SwarmMember& member) = 0;
    virtual void on_disconnected(SwarmMember& member) = 0;
    virtual void on_frozen(std::uint64_t round) = 0;
    /// It enters `view`, and `generation` still tells the view before.
    virtual void on_installed(SwarmMember& member, const rendezvous::View& view) = 0;
    /// It is no longer in the job.
    virtual void on_ended(SwarmMember& member, const Status& why) = 0;
    /// Whether the process of the worker is found to have ended by those that look for it.
    virtual bool has_died(const std::string& incarnation) const = 0;
  };

  SwarmMember(boost::asio::io_context& io, const SwarmServer& server, int slot, Observer& observer);
  ~SwarmMember() override;

  /// Connects, and takes part from then on.
  void start();

  const std::string& incarnation() const { return incarnation_; }
  bool connected() const { return connected_; }
  /// Generation of the view in force; 0 before the first.
  std::uint64_t generation() const { return installed_; }
  /// The bytes that the server has sent it so far.
  std::uint64_t received_bytes() const { return client_->received_bytes(); }

 private:
  rendezvous::ClientOptions client_options(const SwarmServer& server);
  rendezvous::Register registration() const;
  rendezvous::Heartbeat heartbeat() const;
  void on_message(const rendezvous::Message& message);
  void on_welcome(const rendezvous::Welcome& welcome);
  void on_failure(const Status& failure);
  void leave(const Status& why);
  void later(std::function<void()> work);

  // Participation::Effects
  void send(const rendezvous::Message& message) override { client_->send(message); }
  void freeze_lanes() override;
  void begin_lanes_at(const std::vector<std::uint64_t>& positions) override;
  void connect(const rendezvous::View& view) override;
  void cancel_connect() override {}
  void watch_for_end(const rendezvous::Member& member) override;
  void forget_ends() override {}
  void install(const rendezvous::View& view) override;
  runtime::Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit) override;
  void withdraw() override { proposed_round_ = 0; }
  void resume() override { paused_round_ = 0; }
  bool paused_for(std::uint64_t round) const override { return paused_round_ == round; }
  std::uint64_t commits() const override { return commits_; }
  std::vector<std::uint64_t> positions() const override { return positions_; }
  bool synced() const override { return installed_ != 0; }
  void end(const Status& reason) override { leave(reason); }

  boost::asio::io_context& io_;
  const int slot_;
  const std::string incarnation_;
  Observer& observer_;
  runtime::Participation participation_;
  std::unique_ptr<rendezvous::Client> client_;
  bool connected_ = false;
  bool ready_ = false;  ///< has asked to take part in steps
  std::uint64_t installed_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t proposed_round_ = 0;  ///< for which the training thread is to stop; 0: none
  std::uint64_t paused_round_ = 0;    ///< for which it has stopped; 0: it runs
  std::vector<std::uint64_t> positions_;
};

}  // namespace elastic::bench
