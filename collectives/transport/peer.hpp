#pragma once

#include <string>
#include <vector>

namespace elastic::transport {

/// How others reach a worker. Published through the rendezvous.
struct Endpoints {
  std::string host;              ///< same string: same machine and network namespace (shm works)
  std::vector<std::string> tcp;  ///< "address:port", "[v6]:port", the most likely first
  std::string local;             ///< name of the abstract AF_UNIX socket for shared memory
};

/// A worker to be linked with.
struct Peer {
  std::string incarnation;
  Endpoints endpoints;
  /// The links used so far are given up, here as there: one end may consider a link good that the
  /// other has seen break.
  bool renew = false;
  /// The view begins with links to it. Others are made when they are asked for.
  bool at_once = true;
};

}  // namespace elastic::transport
