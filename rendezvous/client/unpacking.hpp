#pragma once

#include <string_view>

#include "base/status.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/view_change.hpp"

namespace elastic::rendezvous {

/// Makes messages of the bytes that a server sends, and views of the changes that it announces.
/// Clients in one thread may share an object that does only once what is the same for all of them.
class Unpacking {
 public:
  virtual ~Unpacking() = default;
  virtual Result<Message> message(std::string_view bytes) { return unpack(bytes); }
  /// kProtocol: it is no change of the view `before`.
  virtual Result<SharedView> view(const ViewChange& change, const SharedView& before) {
    return change_shared(change, before);
  }
};

}  // namespace elastic::rendezvous
