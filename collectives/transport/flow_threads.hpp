#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/sleeper.hpp"

namespace elastic::transport {

/// How many threads move the bytes of which operations.
struct ThreadUse {
  std::size_t count = 1;  ///< the one that runs the operation included
  /// In operations that send so many bytes at least: waking the threads takes some microseconds.
  std::size_t from_bytes = std::size_t{1} << 20;
};

/// Threads that help the one that runs a lane's operation to move the bytes of a large one: one
/// thread cannot send, receive and reduce 100 Gbit/s over TCP. The thread with number t of n
/// moves the flows t, t + n, t + 2n, ... of every link that is lent; number 0 is the link's owner.
///
/// They help, and decide nothing: at the first failure that a thread meets, all of them `stop`, the
/// owner takes the links back, and finds the failure again on its own. It gets their exceptions.
///
/// Belongs to a mesh. The threads start with the first loan, and sleep between loans.
class FlowThreads {
 public:
  /// `count` threads, the owner included: at least 1.
  explicit FlowThreads(std::size_t count);
  ~FlowThreads();
  FlowThreads(const FlowThreads&) = delete;
  FlowThreads& operator=(const FlowThreads&) = delete;

  /// False where this process lacks descriptors for them: then no link may be lent.
  bool valid() const;
  /// The threads, the owner included.
  std::size_t count() const { return movers_.size() + 1; }

  /// The links are lent to the threads as long as this lives.
  class Loan {
   public:
    Loan(FlowThreads& threads, std::vector<LinkPtr> links) : threads_(threads) {
      threads_.begin(std::move(links));
    }
    ~Loan() { threads_.end(); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    FlowThreads& threads_;
  };

  /// For the owner: whether links are lent.
  bool on_loan() const { return !links_.empty(); }
  /// Whether a thread has met a failure. The loan has to end.
  bool stopped() const { return stop_.load(std::memory_order_acquire); }
  /// Throws what a thread has thrown in the last loan, which is over.
  void rethrow();

  /// For links: the owner has posted a message.
  void posted() noexcept;
  /// For links: a flow has completed a message, or a part of it.
  void completed() noexcept { owner_.tell(); }
  /// For links, before a flow sends and after one has received. Plans overwrite what they have sent
  /// without waiting for that, as the bytes have to go round other ranks first (plan/ring.cpp):
  /// this says so to the memory model.
  void before_sending() noexcept { order_.fetch_add(1, std::memory_order_release); }
  void after_receiving() const noexcept { (void)order_.load(std::memory_order_acquire); }
  /// For the owner's sleep: told of completed messages and of failures.
  Sleeper& owner() { return owner_; }

 private:
  struct Mover {
    Sleeper sleeper;
    std::thread thread;
  };

  void begin(std::vector<LinkPtr> links);
  void end() noexcept;
  void start_threads();
  void loop(std::size_t index);
  void move(std::size_t index);
  bool move_once(const FlowShare& share, bool looks_at_all, bool& moved);
  void stop() noexcept;

  std::vector<std::unique_ptr<Mover>> movers_;  // mover i has share i + 1
  Sleeper owner_;
  std::vector<LinkPtr> links_;  // changes only while no mover works
  Mutex mutex_;
  std::exception_ptr thrown_ ELASTIC_GUARDED_BY(mutex_);  // by a mover in the last loan
  std::atomic<bool> stop_{true};
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> loans_{0};  // so far: movers wait for the next
  std::atomic<std::size_t> working_{0};  // movers
  std::atomic<std::uint64_t> order_{0};
};

}  // namespace elastic::transport
