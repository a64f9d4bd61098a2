#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "collectives/transport/linker.hpp"
#include "tests/slowness.hpp"

namespace elastic::transport {

using Links = Result<std::vector<Linker::LinksOfPeer>>;

constexpr Milliseconds kLinkDeadline{10000};
/// Waited for to the end, where no link is to come about: long enough that on a loaded machine,
/// too, everything has been said by then that a failure tells of.
constexpr Milliseconds kRefusalDeadline = Milliseconds(2000) * kHangFactor;
/// The call that data is sent for here.
constexpr Fingerprint kCall{1, 2, 0, 1, 0, 16};

/// A worker's control thread with a Linker on it.
class LinkingWorker {
 public:
  explicit LinkingWorker(LinkerOptions options)
      : linker_(std::make_unique<Linker>(io_, std::move(options))) {
    listening_ = linker_->listen();
    self_.endpoints = linker_->endpoints();
  }
  ~LinkingWorker() {
    on_control_thread([this] { linker_.reset(); });
    guard_.reset();
    io_.stop();
    thread_.join();
  }

  Status listening() const { return listening_; }
  const Endpoints& endpoints() const { return self_.endpoints; }

  std::future<Links> connect(std::vector<Peer> peers, Milliseconds deadline = kLinkDeadline,
                             std::uint64_t generation = 1) {
    auto promise = std::make_shared<std::promise<Links>>();
    std::future<Links> future = promise->get_future();
    on_control_thread([&] {
      linker_->connect(std::move(peers), generation, deadline,
                       [promise](Links links) { promise->set_value(std::move(links)); });
    });
    return future;
  }
  /// Asks for a link of lane 0 that `connect` did not make.
  std::future<Result<LinkPtr>> request(const Peer& peer, Milliseconds deadline = kLinkDeadline,
                                       std::uint64_t generation = 1) {
    auto promise = std::make_shared<std::promise<Result<LinkPtr>>>();
    std::future<Result<LinkPtr>> future = promise->get_future();
    const auto source = linker_->source({peer.incarnation}, 0, generation, deadline);
    source->request(0, [promise](Result<LinkPtr> link) { promise->set_value(std::move(link)); });
    return future;
  }
  std::future<Result<double>> probe(const Peer& peer, Milliseconds deadline = kLinkDeadline) {
    auto promise = std::make_shared<std::promise<Result<double>>>();
    std::future<Result<double>> future = promise->get_future();
    on_control_thread([&] {
      linker_->probe(peer, deadline,
                     [promise](const Result<double>& rate) { promise->set_value(rate); });
    });
    return future;
  }
  std::future<void> watch_for_end(const Peer& peer) {
    auto promise = std::make_shared<std::promise<void>>();
    std::future<void> future = promise->get_future();
    on_control_thread([&] { linker_->watch_for_end(peer, [promise] { promise->set_value(); }); });
    return future;
  }
  void cancel() {
    on_control_thread([this] { linker_->cancel(); });
  }

 private:
  template <typename Function>
  void on_control_thread(Function function) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  std::unique_ptr<Linker> linker_;
  Status listening_;
  Peer self_;
  std::thread thread_{[this] { io_.run(); }};
};

class LinkerTest : public testing::Test {
 protected:
  LinkerOptions options(const std::string& incarnation) const {
    LinkerOptions made;
    made.job = "job";
    made.secret = secret_;
    made.incarnation = incarnation + suffix_;
    made.handshake_deadline = Milliseconds(2000);
    return made;
  }
  Peer peer(const std::string& incarnation, const LinkingWorker& worker) const {
    return {incarnation + suffix_, worker.endpoints()};
  }

  const Secret secret_ = random_secret();
  /// Names of local sockets are shared by all processes of the machine.
  const std::string suffix_ = random_id();
};

/// Sends a message over `left` that has to come out of `right`.
void expect_linked(const LinkPtr& left, const LinkPtr& right, std::uint64_t position = 0);

/// Waits for both sides of a connect and checks every lane in both directions.
std::pair<Linker::LinksOfPeer, Linker::LinksOfPeer> expect_pair(std::future<Links> left,
                                                                std::future<Links> right);

}  // namespace elastic::transport
