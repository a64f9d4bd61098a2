#include "elastic/sampler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "elastic/error.hpp"
#include "training/bytes.hpp"
#include "training/permutation.hpp"
#include "training/ranges.hpp"

namespace elastic {
namespace {

[[noreturn]] void invalid_sampler(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "Sampler: " + message);
}

bool contains(std::span<const WorkerId> workers, WorkerId worker) {
  return std::find(workers.begin(), workers.end(), worker) != workers.end();
}

/// Samples that a draw takes in all: `batch` for each member, or what is left.
std::uint64_t draw_size(std::uint64_t left, std::uint64_t members, std::uint64_t batch) {
  return batch > left / members ? left : members * batch;
}

bool ascending_within(const training::Ranges& ranges, std::uint64_t size) {
  std::uint64_t after = 0;
  for (const Sampler::Range& range : ranges) {
    if (range.begin < after || range.begin >= range.end || range.end > size) return false;
    after = range.end + 1;  // adjacent ranges would have been joined
  }
  return true;
}

}  // namespace

Sampler::Sampler(std::size_t size, std::uint64_t seed)
    : size_(size), seed_(seed), unused_{{0, size}} {
  if (size == 0) invalid_sampler("there are no samples; give the size of the training set");
}

void Sampler::set_members(std::span<const WorkerId> members, WorkerId self) {
  if (!contains(members, self)) {
    invalid_sampler("this worker is not among the " + std::to_string(members.size()) + " members");
  }
  for (auto member = members.begin(); member != members.end(); ++member) {
    if (contains({members.begin(), member}, *member)) invalid_sampler("a worker is a member twice");
  }
  members_.assign(members.begin(), members.end());
  self_ = self;
  abandon();
}

std::span<const std::size_t> Sampler::next(std::size_t batch_per_worker) {
  if (members_.empty()) {
    throw Error(ErrorCode::kNotInitialized,
                "Sampler: next() before set_members(); add the sampler to the State that is given "
                "to elastic::run, or call set_members() first");
  }
  if (batch_per_worker == 0) invalid_sampler("next() was asked for 0 samples per worker");
  abandon();
  begin_next_epoch_if_used_up();

  training::Ranges left = unused_;
  const std::uint64_t total = draw_size(training::count(left), members_.size(), batch_per_worker);
  const std::uint64_t each = total / members_.size();
  const std::uint64_t with_one_more = total % members_.size();
  for (std::size_t member = 0; member < members_.size(); ++member) {
    const std::uint64_t share = each + (member < with_one_more ? 1 : 0);
    open_.push_back(training::take_front(left, share));
    if (members_[member] == self_) fill_share(open_.back());
  }
  global_batch_ = total;
  return share_;
}

void Sampler::commit(std::span<const WorkerId> contributors) {
  if (open_.empty()) return;
  std::vector<WorkerId> members;
  for (const WorkerId worker : contributors) {
    if (contains(members_, worker) && !contains(members, worker)) members.push_back(worker);
  }
  if (members.empty()) invalid_sampler("commit() names no contributor that took part in the draw");

  training::take_front(unused_, global_batch_);
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (contains(members, members_[member])) continue;
    unused_.insert(unused_.end(), open_[member].begin(), open_[member].end());
  }
  training::normalise(unused_);
  members_ = std::move(members);
  abandon();
}

std::size_t Sampler::done_in_epoch() const noexcept {
  return size_ - training::count(unused_);
}

void Sampler::abandon() noexcept {
  open_.clear();
  share_.clear();
  global_batch_ = 0;
}

void Sampler::begin_next_epoch_if_used_up() {
  if (!unused_.empty()) return;
  ++epoch_;
  unused_.push_back({0, size_});
}

void Sampler::fill_share(const std::vector<Range>& positions) {
  if (permutation_.empty() || permutation_epoch_ != epoch_) {
    permutation_ = training::permutation(size_, seed_, epoch_);
    permutation_epoch_ = epoch_;
  }
  for (const Range& range : positions) {
    for (std::uint64_t at = range.begin; at < range.end; ++at) share_.push_back(permutation_[at]);
  }
}

std::vector<std::byte> Sampler::save() const {
  std::vector<std::byte> bytes;
  for (const std::uint64_t value :
       {std::uint64_t{size_}, seed_, epoch_, std::uint64_t{unused_.size()}}) {
    training::put(bytes, value);
  }
  for (const Range& range : unused_) {
    training::put(bytes, range.begin);
    training::put(bytes, range.end);
  }
  return bytes;
}

void Sampler::load(std::span<const std::byte> bytes) {
  training::ByteReader reader(bytes);
  std::uint64_t size = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t ranges = 0;
  const bool headed =
      reader.take(size) && reader.take(seed) && reader.take(epoch) && reader.take(ranges);
  if (!headed || ranges != reader.left() / sizeof(Range) || reader.left() % sizeof(Range) != 0) {
    invalid_sampler(std::to_string(bytes.size()) + " bytes are not a saved sampler");
  }
  if (size != size_) {
    invalid_sampler("the saved sampler deals out " + std::to_string(size) +
                    " samples and this one " + std::to_string(size_) +
                    "; load the same training set on every worker");
  }
  training::Ranges unused(ranges);
  for (Range& range : unused) {
    if (!reader.take(range.begin) || !reader.take(range.end)) invalid_sampler("cut short");
  }
  if (!ascending_within(unused, size))
    invalid_sampler("the saved ranges overlap or are out of bounds");

  abandon();
  seed_ = seed;
  epoch_ = epoch;
  unused_ = std::move(unused);
  permutation_.clear();
}

}  // namespace elastic
