#pragma once

#include <array>
#include <string_view>

namespace elastic {

/// The variables in which a launcher says which of its processes this one is. If there are two
/// names, the first that is set counts. Null: the launcher has no such variable.
struct RankVariables {
  using Names = std::array<const char*, 2>;

  std::string_view launcher;  ///< for documents
  Names rank;
  Names np;  ///< workers that were started together
  Names local_rank;
  Names local_np;
};

inline constexpr RankVariables kElasticrunVariables{"elasticrun, torchrun, or by hand",
                                                    {"ELASTIC_SLOT", "RANK"},
                                                    {"WORLD_SIZE"},
                                                    {"LOCAL_RANK"},
                                                    {"LOCAL_WORLD_SIZE"}};
inline constexpr RankVariables kOpenMpiVariables{"mpirun of Open MPI",
                                                 {"OMPI_COMM_WORLD_RANK"},
                                                 {"OMPI_COMM_WORLD_SIZE"},
                                                 {"OMPI_COMM_WORLD_LOCAL_RANK"},
                                                 {"OMPI_COMM_WORLD_LOCAL_SIZE"}};
inline constexpr RankVariables kMpichVariables{"mpirun of MPICH (Hydra)",
                                               {"PMI_RANK"},
                                               {"PMI_SIZE"},
                                               {"MPI_LOCALRANKID"},
                                               {"MPI_LOCALNRANKS"}};
/// The workers on a host are a part of a list, SLURM_STEP_TASKS_PER_NODE.
inline constexpr RankVariables kSlurmVariables{
    "srun", {"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, {"SLURM_LOCALID"}, {}};

inline constexpr std::array kRankVariables{kElasticrunVariables, kOpenMpiVariables, kMpichVariables,
                                           kSlurmVariables};

}  // namespace elastic
