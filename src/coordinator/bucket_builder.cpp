#include "coordinator/bucket_builder.hpp"

#include <algorithm>
#include <utility>

namespace elastic::coordinator {
namespace {

// Upper bound of the request's encoded size in a note.
std::size_t definition_bytes(const TensorRequest& request) {
  return request.name.size() + 32 + 11 * request.tensors.size();
}

}  // namespace

bool BucketBuilder::fits(const Open& open, const TensorRequest& request) const {
  const std::uint64_t bytes = request.bytes();
  const std::uint64_t most = bucket_bytes_ * (request.on_device ? kDeviceFactor : 1);
  return open.bytes <= most && bytes <= most - open.bytes &&
         open.definition_bytes + definition_bytes(request) <= kMaxDefinitionBytes;
}

std::optional<BucketContent> BucketBuilder::add(std::shared_ptr<const TensorRequest> request) {
  if (request->kind != kAllreduceRequest) return BucketContent{std::move(request)};
  std::optional<BucketContent> closed;
  auto open = std::find_if(open_.begin(), open_.end(), [&](const Open& candidate) {
    const TensorRequest& first = *candidate.content.front();
    return first.op == request->op && first.scale == request->scale &&
           first.on_device == request->on_device;
  });
  if (open != open_.end() && !fits(*open, *request)) {
    closed = std::move(open->content);
    open_.erase(open);
    open = open_.end();
  }
  if (open == open_.end()) open = open_.insert(open_.end(), Open{});
  open->bytes += request->bytes();
  open->definition_bytes += definition_bytes(*request);
  open->content.push_back(std::move(request));
  return closed;
}

bool BucketBuilder::remove(const std::shared_ptr<const TensorRequest>& request) {
  for (auto open = open_.begin(); open != open_.end(); ++open) {
    const auto at = std::find(open->content.begin(), open->content.end(), request);
    if (at == open->content.end()) continue;
    open->bytes -= request->bytes();
    open->definition_bytes -= definition_bytes(*request);
    open->content.erase(at);
    if (open->content.empty()) open_.erase(open);
    return true;
  }
  return false;
}

std::vector<BucketContent> BucketBuilder::close_all() {
  std::vector<BucketContent> closed;
  for (Open& open : open_) closed.push_back(std::move(open.content));
  open_.clear();
  return closed;
}

}  // namespace elastic::coordinator
