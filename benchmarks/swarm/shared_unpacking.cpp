#include "benchmarks/swarm/shared_unpacking.hpp"

#include <utility>

namespace elastic::bench {

namespace {

/// Shorter messages are not worth the comparison.
constexpr std::size_t kLong = 512;

}  // namespace

Result<rendezvous::Message> SharedUnpacking::message(std::string_view bytes) {
  if (bytes.size() < kLong) return Unpacking::message(bytes);
  if (bytes != bytes_) {
    Result<rendezvous::Message> message = Unpacking::message(bytes);
    if (!message.ok()) return message;
    bytes_ = bytes;
    message_ = std::move(message).value();
  }
  return message_;
}

Result<rendezvous::SharedView> SharedUnpacking::view(const rendezvous::ViewChange& change,
                                                     const rendezvous::SharedView& before) {
  if (before != before_ || change != change_) {
    Result<rendezvous::SharedView> after = Unpacking::view(change, before);
    if (!after.ok()) return after;
    change_ = change;
    before_ = before;
    after_ = std::move(after).value();
  }
  return after_;
}

}  // namespace elastic::bench
