#pragma once

#include <functional>

#include "base/status.hpp"
#include "collectives/transport/link.hpp"

namespace elastic::transport {

/// Where a Mesh gets the links that its view did not begin with. Any thread may ask.
class LinkSource {
 public:
  /// The link, or why it could not be made. Called once or, if the view ends before, never.
  using Arrived = std::function<void(Result<LinkPtr>)>;

  virtual ~LinkSource() = default;
  /// Asks for the link with `rank`, which has to ask for it, too. `arrived` is called on another
  /// thread.
  virtual void request(int rank, Arrived arrived) = 0;
};

}  // namespace elastic::transport
