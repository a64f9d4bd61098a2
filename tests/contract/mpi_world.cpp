#include "mpi_world.hpp"

#include <mpi.h>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"
#include "collectives/backend/module.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"

namespace elastic::collectives {
namespace {

using transport::Link;
using transport::LinkPtr;
using transport::StreamPtr;
using transport::TcpStream;

constexpr std::uint64_t kGeneration = 7;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("cannot ") + what);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = port;
  return address;
}

UniqueFd listen_on_loopback(int backlog, std::uint16_t& port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener.get(), generic, length) == 0, "bind");
  require(::listen(listener.get(), backlog) == 0, "listen");
  require(::getsockname(listener.get(), generic, &length) == 0, "learn the port");
  port = address.sin_port;
  return listener;
}

LinkPtr link_over(UniqueFd connection, int peer) {
  std::vector<StreamPtr> streams;
  streams.push_back(std::make_unique<TcpStream>(std::move(connection)));
  return std::make_shared<Link>(std::move(streams), "rank " + std::to_string(peer));
}

/// Connects all ranks: every rank dials those before it, and sends its own rank.
std::vector<LinkPtr> link_up(int rank, int size) {
  std::vector<std::uint16_t> ports(static_cast<std::size_t>(size));
  std::uint16_t port = 0;
  const UniqueFd listener = listen_on_loopback(size, port);
  MPI_Allgather(&port, 1, MPI_UINT16_T, ports.data(), 1, MPI_UINT16_T, MPI_COMM_WORLD);
  std::vector<LinkPtr> links(ports.size());
  for (int peer = 0; peer < rank; ++peer) {
    UniqueFd dialed(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(ports[static_cast<std::size_t>(peer)]);
    require(
        ::connect(dialed.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
        "dial");
    require(::send(dialed.get(), &rank, sizeof rank, 0) == sizeof rank, "say the rank");
    links[static_cast<std::size_t>(peer)] = link_over(std::move(dialed), peer);
  }
  for (int others = rank + 1; others < size; ++others) {
    UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int peer = -1;
    require(::recv(accepted.get(), &peer, sizeof peer, MSG_WAITALL) == sizeof peer, "hear a rank");
    links[static_cast<std::size_t>(peer)] = link_over(std::move(accepted), peer);
  }
  return links;
}

void exchange(std::vector<std::string>& by_rank) {
  for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
    std::string& each = by_rank[static_cast<std::size_t>(rank)];
    std::uint64_t bytes = each.size();
    MPI_Bcast(&bytes, 1, MPI_UINT64_T, rank, MPI_COMM_WORLD);
    each.resize(bytes);
    MPI_Bcast(each.data(), static_cast<int>(bytes), MPI_CHAR, rank, MPI_COMM_WORLD);
  }
}

/// Counters in memory that all processes of this machine share; freed by the last of them.
std::shared_ptr<std::atomic<int>[]> counters(std::size_t count) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto bytes = static_cast<MPI_Aint>(rank == 0 ? count * sizeof(std::atomic<int>) : 0);
  void* own = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  MPI_Aint size = 0;
  int unit = 0;
  std::atomic<int>* shared = nullptr;
  MPI_Win_shared_query(window, 0, &size, &unit, static_cast<void*>(&shared));
  if (rank == 0) std::uninitialized_value_construct_n(shared, count);
  MPI_Barrier(MPI_COMM_WORLD);
  return {shared, [window](std::atomic<int>*) mutable { MPI_Win_free(&window); }};
}

/// Held by what a world is destroyed with before its backends: a rank that is through with a test
/// keeps its links until all are.
struct Departure {
  Departure() = default;
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;
  ~Departure() { MPI_Barrier(MPI_COMM_WORLD); }
};

}  // namespace

World mpi_world() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto loaded = load_module("mpi", BACKENDS);
  require(loaded.ok(), "load the module");
  const auto* const module = reinterpret_cast<const BackendModule*>(loaded.value());
  require(module->start({.lanes = 1, .under_mpirun = true}).ok(), "start MPI");
  auto mesh = std::make_shared<transport::Mesh>(rank, link_up(rank, size));
  auto native = make_native_backend(kGeneration, mesh);
  World world;
  world.backends.resize(static_cast<std::size_t>(size));
  world.backends[static_cast<std::size_t>(rank)] =
      module->make({kGeneration, 0, "", std::move(mesh), std::move(native)}).value();
  world.exchange = [departure = std::make_shared<Departure>()](auto& by_rank) {
    exchange(by_rank);
  };
  world.counters = counters;
  return world;
}

}  // namespace elastic::collectives
