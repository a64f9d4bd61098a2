// The contract for MPI: started by mpirun, each process has one rank of every view.
#include <mpi.h>

#include <gtest/gtest.h>

#include "backend_contract.hpp"
#include "collectives/backend/module.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "mpi_world.hpp"

namespace elastic::collectives {
namespace {

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Called when MPI has been initialised.
auto the_world() {
  return testing::Combine(testing::Values(Subject{"processes", [](int) { return mpi_world(); }}),
                          testing::Values(world_size()));
}

INSTANTIATE_TEST_SUITE_P(Mpi, AdasumContract, the_world(), name_of);
INSTANTIATE_TEST_SUITE_P(Mpi, BackendContract, the_world(), name_of);

/// MPI refuses changes of the members that other backends support.
TEST(MpiMembership, IsFixed) {
  const World world = mpi_world();
  const auto* const module =
      reinterpret_cast<const BackendModule*>(load_module("mpi", BACKENDS).value());
  EXPECT_TRUE(module->fixed_membership);
  const auto refused = [&](std::uint64_t generation, int size) {
    auto mesh = std::make_shared<transport::Mesh>(
        0, std::vector<transport::LinkPtr>(static_cast<std::size_t>(size)));
    auto native = make_native_backend(generation, mesh);
    return module->make({generation, 0, "", std::move(mesh), std::move(native)}).status();
  };
  for (const Status& status : {refused(8, world_size()), refused(7, world_size() + 1)}) {
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_NE(status.message().find("fixed membership"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("native or gloo"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace elastic::collectives

/// MPI comes first: the suite is as large as its world is. That the program has initialised it is a
/// case of its own for the module.
int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  testing::InitGoogleTest(&argc, argv);
  const int mine = RUN_ALL_TESTS();
  int worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return worst;
}
