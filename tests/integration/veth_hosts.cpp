#include "veth_hosts.hpp"

#include <cstdlib>
#include <future>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace elastic {

namespace {

void command(const std::string& text) {
  if (std::system(text.c_str()) != 0) throw std::runtime_error("failed: " + text);
}

/// The end that `host` has of its cable to `other`.
std::string cable(int host, int other) {
  return "to" + std::to_string(other) + "from" + std::to_string(host);
}

}  // namespace

/// A thread in a network namespace, which lives as long as the thread or a socket of it does.
class VethHosts::Host {
 public:
  Host() {
    run([this] {
      if (::unshare(CLONE_NEWNET) != 0) throw std::runtime_error("cannot make a network namespace");
      thread_id_ = ::gettid();
      command("ip link set lo up");
    });
  }
  ~Host() {
    guard_.reset();
    thread_.join();
  }

  void run(const std::function<void()>& function) {
    std::packaged_task<void()> task(function);
    boost::asio::post(io_, [&task] { task(); });
    task.get_future().get();
  }
  int thread_id() const { return thread_id_; }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  int thread_id_ = 0;
  std::thread thread_{[this] { io_.run(); }};
};

bool VethHosts::allowed() {
  return ::geteuid() == 0;
}

VethHosts::VethHosts(int count) {
  for (int host = 0; host < count; ++host) hosts_.push_back(std::make_unique<Host>());
  for (int low = 0; low < count; ++low) {
    for (int high = low + 1; high < count; ++high) {
      const std::string far = std::to_string(hosts_[static_cast<std::size_t>(high)]->thread_id());
      run(low, [&] {
        command("ip link add " + cable(low, high) + " type veth peer name " + cable(high, low) +
                " netns " + far);
      });
      for (const auto& [host, other] : {std::pair(low, high), std::pair(high, low)}) {
        run(host, [host = host, other = other] {
          command("ip address add " + address(host, other) + "/24 dev " + cable(host, other));
          command("ip link set " + cable(host, other) + " up");
        });
      }
    }
  }
}

VethHosts::~VethHosts() = default;

void VethHosts::run(int host, const std::function<void()>& function) {
  hosts_[static_cast<std::size_t>(host)]->run(function);
}

std::string VethHosts::address(int host, int other) {
  const int low = host < other ? host : other;
  const int high = host < other ? other : host;
  return "10.77." + std::to_string(16 * low + high) + "." + std::to_string(host + 1);
}

void VethHosts::cut(int from, int to) {
  // Whatever is sent goes to nobody's hardware address: neither side is told.
  run(from, [&] {
    command("ip neighbour replace " + address(to, from) + " lladdr 02:00:00:00:00:01 dev " +
            cable(from, to) + " nud permanent");
  });
}

}  // namespace elastic
