#include "nccl/communicator_fixture.hpp"

#include <dlfcn.h>
#include <stdexcept>
#include <thread>

#include "nccl/native_exchange.hpp"

namespace elastic::collectives::nccl {

namespace {

const NcclStandIn* stand_in() {
  void* const handle = ::dlopen(NCCL_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(::dlerror());
  return static_cast<const NcclStandIn*>(::dlsym(handle, kNcclStandInSymbol));
}

}  // namespace

CommunicatorFixture::CommunicatorFixture() : nccl_(stand_in()) {
  auto loaded = NcclLibrary::load(NCCL_STAND_IN);
  if (!loaded.ok()) throw std::runtime_error(loaded.status().message());
  library_ = loaded.value();
  nccl_->reset();
}

/// Ends all that a test has left hanging: nothing may be under way when the next one begins.
CommunicatorFixture::~CommunicatorFixture() {
  nccl_->release();
  for (auto& view : views_) {
    for (auto& each : view) each->abort();
  }
  for (auto& view : views_) {
    for (auto& each : view) (void)each->ended(some_day());
  }
  // Communicators that were given up as stuck return once released, and are destroyed then. All
  // threads are done when no other object shares the library any more.
  views_.clear();
  until([&] { return library_.use_count() == 1; });
  EXPECT_EQ(nccl_->violations(), std::vector<std::string>());
}

void CommunicatorFixture::prepare(int size, const Deadlines& deadlines, int came,
                                  std::uint64_t generation) {
  auto world = native_world(size, all_wirings().front(), {});
  auto& view = views_.emplace_back();
  for (int rank = 0; rank < (came < 0 ? size : came); ++rank) {
    std::shared_ptr<Backend> native = std::move(world.backends[static_cast<std::size_t>(rank)]);
    view.push_back(Communicator::prepare(library_, {.view = {generation, rank, size},
                                                    .exchange = exchange_over(std::move(native), 1),
                                                    .deadlines = deadlines,
                                                    .choose_device = {},
                                                    .tuning = tuning_}));
  }
  // Links to absent ranks stay open, as those of a rank that hangs.
  for (auto& backend : world.backends) {
    if (backend) absent_.push_back(std::move(backend));
  }
}

void CommunicatorFixture::all_ready() {
  for (Communicator* each : all()) {
    const Status ready = each->ready(some_day());
    EXPECT_TRUE(ready.ok()) << ready.message();
  }
}

void CommunicatorFixture::abort_all() {
  for (Communicator* each : all()) each->abort();
}

void CommunicatorFixture::all_ended() {
  for (Communicator* each : all()) {
    const Status ended = each->ended(some_day());
    EXPECT_TRUE(ended.ok()) << ended.message();
  }
}

std::vector<Communicator*> CommunicatorFixture::all() {
  std::vector<Communicator*> all;
  for (auto& each : views_.back()) all.push_back(each.get());
  return all;
}

/// Polls, because no event tells when detached threads of the library have changed the counts.
void CommunicatorFixture::until(const std::function<bool()>& done) {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Status CommunicatorFixture::launch(Communicator& communicator, bool never_done,
                                   TimePoint end) const {
  return communicator.perform(
      "launch", [&](const Api&, ncclComm* comm) { return nccl_->launch(comm, never_done); }, end);
}

Status CommunicatorFixture::launch_and_hang(Communicator& communicator) const {
  return communicator.perform(
      "launch", [&](const Api&, ncclComm* comm) { return nccl_->launch_and_hang(comm); },
      some_day());
}

}  // namespace elastic::collectives::nccl
