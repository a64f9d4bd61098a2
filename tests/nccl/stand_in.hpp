#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct ncclComm;

namespace elastic::collectives::nccl {

/// The behaviour of the stand-in for libnccl towards a rank, for all of its communicators.
struct NcclScript {
  enum class Init : std::uint8_t {
    kMakes,  ///< done when all ranks have come
    kNeverDone,
    kNeverReturns,  ///< before `release`
    kFailsAtOnce,
    kFailsLater,
  };
  static constexpr int kCudaError = 1;
  static constexpr int kSystemError = 2;
  static constexpr int kInvalidUsage = 5;
  static constexpr int kRemoteError = 6;

  Init init = Init::kMakes;
  int failure = kSystemError;  ///< of kFailsAtOnce
  /// Of a communicator in which this is the rank's number, to a smaller one.
  Init shrink = Init::kMakes;
  bool abort_waits = false;  ///< ncclCommAbort does, until `release`

  int error_of_size = 0;  ///< polls of a communicator of so many ranks say kRemoteError

  /// The course of a collective.
  enum class Allreduce : std::uint8_t {
    kWorks,
    kFailsAtOnce,
    kFailsLater,  ///< polls say so; nothing comes of it on the device
    kHangs,       ///< on the device, in silence
    kHangsAtEnd,  ///< the same, when the others have all that they need of it
  };
  Allreduce allreduce = Allreduce::kWorks;
  int works_before = 0;  ///< so many of this rank's work all the same

  /// In its collective of this number, from 0 on, NCCL connects the ranks: it takes the call when
  /// all have made theirs.
  int connects_in = -1;

  bool refuses_memory = false;  ///< ncclCommRegister does
};

struct NcclCounts {
  int ids = 0;
  int inits = 0;
  int shrinks = 0;
  int launches = 0;
  int allreduces = 0;
  int broadcasts = 0;
  int allgathers = 0;
  int reduce_scatters = 0;
  int groups = 0;
  int registrations = 0;
  int in_registered = 0;  ///< allreduces whose result came to memory that was registered
  std::size_t bytes = 0;  ///< that ranks have given to collectives
  int aborts = 0;         ///< begun
  int waiting = 0;        ///< calls that wait for `release`
};

/// The controls of a stand-in for libnccl, as a shared object: it can be told to hang, to fail, and
/// to say nothing, and notes what NCCL does not allow its callers. Ranks are threads, or processes
/// that can be told nothing. Its version is in NCCL_STAND_IN_VERSION. Its collectives are made on
/// streams of the stand-in for the CUDA driver, of which the file is in NCCL_STAND_IN_DRIVER. With
/// NCCL_STAND_IN_ABORT_WAITS an abort waits for processes that do not abort, as NCCL's does.
struct NcclStandIn {
  void (*reset)();  ///< only when nothing is under way any more
  void (*script)(int rank, const NcclScript& script);
  /// Sets the result of ncclCommGetAsyncError, from now on, for all communicators of `rank`.
  void (*fail)(int rank, int result);
  /// Lets everything go on that waits, now and later.
  void (*release)();
  /// Sets the callback for each poll of a communicator of `rank`, in the polling thread.
  void (*on_poll)(std::function<void(int rank)> call);
  NcclCounts (*counts)();
  std::vector<std::string> (*violations)();
  /// Fields of the configuration of the latest communicator.
  struct Config {
    int min_ctas = 0;
    int max_ctas = 0;
    int cta_policy = 0;
    std::string net;
  };
  Config (*config)();
  /// Stands for a collective: is in progress for some polls. `never_done`: for all of them.
  int (*launch)(ncclComm* comm, bool never_done);
  /// One that hangs until `release`.
  int (*launch_and_hang)(ncclComm* comm);
};
inline constexpr const char* kNcclStandInSymbol = "nccl_stand_in";

}  // namespace elastic::collectives::nccl
