#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include <gloo/context.h>

#include "base/status.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// The error that ends a collective of Gloo on the links of the view.
class LinksFailure : public std::runtime_error {
 public:
  explicit LinksFailure(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// A Gloo context that sends over the links of a view. If a link fails, the collective throws a
/// LinksFailure, and nothing stays posted on the links.
///
/// Gloo's own connections would be a second set of sockets for each view, neither authenticated nor
/// encrypted, whose waits do not end when the view changes (nor, for data that is partly there,
/// when the peer dies), and whose I/O thread ends the process when it fails.
///
/// Owned by the thread that runs the lane's operation.
class LinksContext final : public gloo::Context {
 public:
  explicit LinksContext(std::shared_ptr<transport::Mesh> mesh);

  /// Starts an operation on the links: collectives belong to it until the next `begin`.
  void begin(const transport::OpTag& tag, const transport::Fingerprint& fingerprint);
};

}  // namespace elastic::collectives
