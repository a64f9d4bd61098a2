#pragma once

#include <cstddef>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/payload.hpp"
#include "collectives/kernels/adasum.hpp"
#include "collectives/plan/adasum.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// The allreduce by ReduceOp::kAdasum (plan::Adasum has the steps). Two vectors a and b become
/// a (1 - ab / 2|a|^2) + b (1 - ab / 2|b|^2): orthogonal ones are added, parallel ones averaged.
/// Each section is a tensor with weights of its own.
///
/// All ranks get the same bits: one rank computes each element of a level, from dot products that
/// are the same for all ranks of both blocks, and the others receive it.
///
/// No rank completes before all ranks have entered (rule R1 in docs/atomicity.md). A rank that has
/// done level i has received from its peer a message that the peer sends after its own level i - 1,
/// or, in level 0, after it has entered and has received the vector of its surplus rank. By
/// induction all ranks of both blocks, and their surplus ranks, have entered. After the last level
/// these are all ranks. A surplus rank completes with the result that its proxy sends then. Empty
/// vectors travel as empty messages.
///
/// Owned by the thread that runs the lane's operation.
class Adasum {
 public:
  Adasum(transport::Mesh& mesh, Executor& executor) : mesh_(mesh), executor_(executor) {}

  /// Combines the sections of floats in `data` with those of the other ranks, in place. Fails like
  /// `Executor::run`.
  Status run(const std::vector<Section>& sections, std::byte* data);

 private:
  Status take_in(int surplus, const plan::Range& whole);
  Status combine(const plan::AdasumLevel& level);
  Status share(const plan::AdasumLevel& level);
  Status exchange(int peer, const plan::Range* sent, const plan::Range* received,
                  const PlanBuffers& memory);
  void compute_products(const plan::Range& part, bool own_first);
  Status sum_products(const std::vector<int>& ranks);
  void add_weighted(const plan::Range& part, bool own_first);
  template <typename Use>
  void for_each_piece(const plan::Range& part, bool own_first, const Use& use);

  transport::Mesh& mesh_;
  Executor& executor_;
  Buffer received_;  // the peer's vector, or the half of it that this rank combines
  std::vector<kernels::DotProducts> products_;  // of each section

  // The running call.
  const std::vector<Section>* sections_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace elastic::collectives
