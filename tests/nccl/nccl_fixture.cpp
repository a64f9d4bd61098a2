#include "nccl/nccl_fixture.hpp"

#include <chrono>
#include <utility>

#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "contract/native_world.hpp"

namespace elastic::collectives::nccl {

NcclFixture::NcclFixture() : nccl_(stand_in()), gpu_(0, CUDA_STAND_IN) {
  nccl_->reset();
}

NcclFixture::~NcclFixture() {
  nccl_->release();
  end_view();
  services_.clear();  // and with them all memory
  EXPECT_EQ(nccl_->violations(), std::vector<std::string>());
}

void NcclFixture::end_view() {
  backends_.clear();
  other_backends_.clear();
  // Detached threads that end communicators share the library, so wait until it is released.
  for (const NcclServices& each : services_) {
    each.communicators->end_retired(*each.reaper);
    (void)each.reaper->wait();
    until([&] { return each.library.use_count() == 1; });
  }
}

void NcclFixture::make(int size, bool waits, std::uint64_t generation,
                       const std::function<void(NcclServices&)>& change) {
  size_ = size;
  backends_.clear();
  other_backends_.clear();
  meshes_.clear();
  position_ = 0;
  services_.resize(static_cast<std::size_t>(size));
  const auto meshes = wire(size, all_wirings().front());
  const auto other_meshes = wire(size, all_wirings().front());
  for (std::size_t rank = 0; rank < services_.size(); ++rank) {
    NcclServices& services = services_[rank];
    if (!services.library) services = services_for_a_rank();
    services.waits = waits;
    if (change) change(services);
    meshes_.emplace_back(meshes[rank]);
    const auto lane = [&](std::size_t number, const std::shared_ptr<transport::Mesh>& mesh) {
      auto native = make_native_backend(generation, mesh);
      return make_nccl_backend({generation, number, "", mesh, std::move(native)}, services);
    };
    backends_.push_back(lane(0, meshes[rank]));
    other_backends_.push_back(lane(1, other_meshes[rank]));
  }
}

void NcclFixture::until(const std::function<bool()>& done) {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace elastic::collectives::nccl
