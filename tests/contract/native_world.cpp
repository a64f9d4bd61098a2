#include "native_world.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "collectives/transport/shm/shm.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"

namespace elastic::collectives {
namespace {

using transport::StreamPair;
using transport::StreamPtr;

/// Smaller than the data of many tests, so that senders have to wait.
constexpr std::size_t kRingBytes = 64 * 1024;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("cannot make ") + what);
}

StreamPair shm_pair(const ArenaPtr& first, const ArenaPtr& second) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a socket pair");
  UniqueFd near(ends[0]);
  auto offered = transport::offer_shm(near.get(), kRingBytes, first.get());
  require(offered.ok(), "shared memory");
  auto accepted = transport::accept_shm(UniqueFd(ends[1]), second.get());
  require(accepted.ok(), "shared memory");
  auto concluded = transport::conclude_shm(std::move(near), std::move(offered).value());
  require(concluded.ok(), "shared memory");
  return {std::move(concluded).value(), std::move(accepted).value()};
}

StreamPair tcp_pair(const ArenaPtr& /*first*/, const ArenaPtr& /*second*/) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener.get(), generic, length) == 0, "a listener");
  require(::listen(listener.get(), 1) == 0, "a listener");
  require(::getsockname(listener.get(), generic, &length) == 0, "a listener");
  UniqueFd dialer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::connect(dialer.get(), generic, length) == 0, "a connection");
  UniqueFd acceptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  require(static_cast<bool>(acceptor), "a connection");
  return {std::make_unique<transport::TcpStream>(std::move(dialer)),
          std::make_unique<transport::TcpStream>(std::move(acceptor))};
}

}  // namespace

std::vector<Wiring> all_wirings() {
  return {{"shm", shm_pair},
          {"tcp", tcp_pair},
          {"tcp_3", tcp_pair, 3},
          {.name = "tcp_5_by_3_threads", .pair = tcp_pair, .streams = 5, .threads = 3}};
}

std::shared_ptr<std::byte> allocate(const ArenaPtr& arena, std::size_t bytes) {
  auto memory = arena->allocate(bytes);
  require(memory.ok(), "memory");
  return {memory.value(), [arena, bytes](std::byte* its) { arena->free(its, bytes); }};
}

Wiring arena_wiring() {
  return {"arena", shm_pair, 1, true};
}

std::vector<ArenaPtr> arenas_of(int size, const Wiring& wiring) {
  std::vector<ArenaPtr> arenas(static_cast<std::size_t>(size));
  for (ArenaPtr& arena : arenas) {
    if (!wiring.arenas) continue;
    auto made = transport::Arena::create();
    require(made.ok(), "an arena");
    arena = std::move(made).value();
  }
  return arenas;
}

namespace {

/// `between` two ranks, of which the lower one comes first.
std::vector<std::shared_ptr<transport::Mesh>> wire_each(
    const std::vector<ArenaPtr>& arenas,
    const std::function<Wiring(std::size_t low, std::size_t high)>& between,
    std::size_t threads = 1) {
  const std::size_t ranks = arenas.size();
  std::vector<std::vector<transport::LinkPtr>> links(ranks, std::vector<transport::LinkPtr>(ranks));
  for (std::size_t low = 0; low < ranks; ++low) {
    for (std::size_t high = low + 1; high < ranks; ++high) {
      std::vector<StreamPtr> of_low;
      std::vector<StreamPtr> of_high;
      const Wiring wiring = between(low, high);
      for (int i = 0; i < wiring.streams; ++i) {
        StreamPair pair = wiring.pair(arenas[low], arenas[high]);
        of_low.push_back(std::move(pair.first));
        of_high.push_back(std::move(pair.second));
      }
      links[low][high] =
          std::make_shared<transport::Link>(std::move(of_low), "rank " + std::to_string(high));
      links[high][low] =
          std::make_shared<transport::Link>(std::move(of_high), "rank " + std::to_string(low));
    }
  }
  std::vector<std::shared_ptr<transport::Mesh>> meshes;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    meshes.push_back(std::make_shared<transport::Mesh>(
        static_cast<int>(rank), links[rank], std::make_shared<EventFd>(), nullptr,
        transport::ThreadUse{.count = threads, .from_bytes = 1}));
  }
  return meshes;
}

World world_on(const std::vector<ArenaPtr>& arenas,
               std::vector<std::shared_ptr<transport::Mesh>> meshes, const NativeOptions& options) {
  World world;
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    NativeOptions own = options;
    own.arena = arenas[rank];
    world.backends.push_back(make_native_backend(7, std::move(meshes[rank]), own));
  }
  return world;
}

}  // namespace

std::vector<std::shared_ptr<transport::Mesh>> wire(const std::vector<ArenaPtr>& arenas,
                                                   const Wiring& wiring) {
  return wire_each(
      arenas, [&](auto, auto) { return wiring; }, wiring.threads);
}

World native_world(int size, const Wiring& wiring, const NativeOptions& options) {
  const std::vector<ArenaPtr> arenas = arenas_of(size, wiring);
  World world = world_on(arenas, wire(arenas, wiring), options);
  if (wiring.arenas) {
    world.allocate = [arenas](int rank, std::size_t bytes) {
      return allocate(arenas[static_cast<std::size_t>(rank)], bytes);
    };
  }
  return world;
}

World native_world_of_hosts(const NativeOptions& options, int streams) {
  const std::vector<int>& hosts = options.hosts;
  const auto between = [&](std::size_t low, std::size_t high) {
    return hosts[low] == hosts[high] ? Wiring{"shm", shm_pair} : Wiring{"tcp", tcp_pair, streams};
  };
  const std::vector<ArenaPtr> none(hosts.size());
  World world = world_on(none, wire_each(none, between), options);
  world.hosts = hosts;
  return world;
}

}  // namespace elastic::collectives
