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
/// ReduceOp::kHierarchicalAdasum does that with the averages of the hosts
/// (plan::HierarchicalAdasum). The owner of a share averages it in an order that its rank fixes,
/// and so computes each element of it for all ranks.
///
/// No rank completes before all ranks have entered (rule R1 in docs/atomicity.md). A rank that has
/// done level i has received from its peer a message that the peer sends after its own level i - 1,
/// or, in level 0, after it has entered and has received the vector of its surplus rank. By
/// induction all ranks of both blocks, and their surplus ranks, have entered. After the last level
/// these are all ranks. A surplus rank completes with the result that its proxy sends then. Empty
/// vectors travel as empty messages. In the hierarchical form an owner has entered once it has
/// received its share from every rank of its host, so that the ranks above are hosts. The other
/// ranks of a host complete with a share that an owner sends at the end.
///
/// Owned by the thread that runs the lane's operation.
class Adasum {
 public:
  Adasum(transport::Mesh& mesh, Executor& executor) : mesh_(mesh), executor_(executor) {}

  /// Combines the sections of floats in `data` with those of the other ranks, in place. Fails like
  /// `Executor::run`.
  Status run(const std::vector<Section>& sections, std::byte* data);
  /// The same with the average of each of the `hosts` in place of its ranks' vectors.
  Status run_among(const plan::Hosts& hosts, const std::vector<Section>& sections, std::byte* data);

 private:
  Status combine_all(const plan::Adasum& part, const plan::Range& whole);
  Status take_in(const plan::Adasum& part, const plan::Range& whole);
  Status average_on_host(const plan::HierarchicalAdasum& part);
  Status share_on_host(const plan::HierarchicalAdasum& part);
  Status combine(const plan::AdasumLevel& level);
  Status share(const plan::AdasumLevel& level);
  Status exchange(int peer, const plan::Range* sent, const plan::Range* received,
                  const PlanBuffers& memory);
  void compute_products(const plan::Range& part, bool own_first);
  Status sum_products(const std::vector<int>& ranks);
  void add_weighted(const plan::Range& part, bool own_first);
  void add_to_average(const plan::Range& part, int vectors);
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
