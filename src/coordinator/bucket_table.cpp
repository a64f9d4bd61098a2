#include "coordinator/bucket_table.hpp"

#include <utility>

namespace elastic::coordinator {

bool NameState::as_planned() const {
  return bucket != nullptr && own != nullptr && *own == *(*bucket->content)[index];
}

void NameState::forget_submissions_by_name() {
  submissions_by_name.clear();
  submissions_by_name_count = 0;
}

void Bucket::reset(std::size_t ranks) {
  submitted = 0;
  said_ready = false;
  by_name = false;
  missing = size() * ranks;
  ready.assign(ranks, false);
  submitted_by_name.assign(ranks, 0);
}

NameState& BucketTable::at(const std::string& name) {
  const auto [entry, is_new] = names_.try_emplace(name);
  if (is_new) entry->second.name = &entry->first;
  return entry->second;
}

NameState* BucketTable::find(const std::string& name) {
  const auto entry = names_.find(name);
  return entry == names_.end() ? nullptr : &entry->second;
}

Bucket& BucketTable::insert(BucketContent content) {
  Bucket& bucket = buckets_.emplace_back();
  bucket.self = std::prev(buckets_.end());
  for (const auto& request : content) {
    NameState& tensor = at(request->name);
    tensor.bucket = &bucket;
    tensor.index = bucket.tensors.size();
    bucket.tensors.push_back(&tensor);
  }
  bucket.content = std::make_shared<const BucketContent>(std::move(content));
  return bucket;
}

void BucketTable::erase(Bucket& bucket) {
  for (NameState* tensor : bucket.tensors) {
    tensor->bucket = nullptr;
    release(*tensor);
  }
  buckets_.erase(bucket.self);
}

void BucketTable::release(NameState& tensor) {
  if (tensor.own || tensor.bucket != nullptr || tensor.submissions_by_name_count > 0) return;
  names_.erase(names_.find(*tensor.name));
}

}  // namespace elastic::coordinator
