#include "elastic/sampler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
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

/// Samples that a draw takes in all: `batch` for each share, or what is left.
std::uint64_t draw_size(std::uint64_t left, std::uint64_t shares, std::uint64_t batch) {
  return batch > left / shares ? left : shares * batch;
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

Sampler::Sampler(std::size_t size, std::uint64_t seed, std::size_t data_size)
    : Sampler(size, seed) {
  if (size > data_size) {
    invalid_sampler("it would distribute " + std::to_string(size) + " samples of data that has " +
                    std::to_string(data_size) + "; give a size from 1 to " +
                    std::to_string(data_size));
  }
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
    throw Error(
        ErrorCode::kNotInitialized,
        "Sampler: next() was called where the members are not known; add the sampler to the "
        "State, and call next() in the body of elastic::run");
  }
  if (batch_per_worker == 0) invalid_sampler("next() was asked for 0 samples per worker");
  draw(members_.size(), batch_per_worker);
  members_draw_ = true;
  const auto own = std::find(members_.begin(), members_.end(), self_) - members_.begin();
  return share(static_cast<std::size_t>(own));
}

void Sampler::draw(std::size_t shares, std::size_t batch_per_share) {
  if (shares == 0 || batch_per_share == 0) {
    invalid_sampler("draw() was asked for " + std::to_string(shares) + " shares of " +
                    std::to_string(batch_per_share) + " samples; give at least 1 of 1");
  }
  note_repetition();
  abandon();
  begin_next_epoch_if_used_up();

  training::Ranges left = unused_;
  const std::uint64_t total = draw_size(training::count(left), shares, batch_per_share);
  const std::uint64_t each = total / shares;
  const std::uint64_t with_one_more = total % shares;
  for (std::size_t index = 0; index < shares; ++index) {
    open_.push_back(training::take_front(left, each + (index < with_one_more ? 1 : 0)));
  }
  global_batch_ = total;
}

std::span<const std::size_t> Sampler::share(std::size_t index) {
  if (index >= open_.size()) {
    invalid_sampler("there is no share " + std::to_string(index) + "; the open draw has " +
                    std::to_string(open_.size()));
  }
  const training::Permutation permutation(size_, seed_, epoch_);
  share_.clear();
  for (const Range& range : open_[index]) {
    for (std::uint64_t at = range.begin; at < range.end; ++at) share_.push_back(permutation(at));
  }
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
  for (std::size_t member = 0; members_draw_ && member < members_.size(); ++member) {
    if (contains(members, members_[member])) continue;
    unused_.insert(unused_.end(), open_[member].begin(), open_[member].end());
  }
  training::normalise(unused_);
  members_ = std::move(members);
  repetitions_ = 0;
  abandon();
}

void Sampler::commit(std::span<const Contributors> operations) {
  if (operations.empty()) invalid_sampler("commit() was given no operation's contributors");
  // Ranks can complete named operations in different orders. The latest view's order of ranks is
  // the same on all of them.
  const auto latest = std::max_element(
      operations.begin(), operations.end(),
      [](const auto& a, const auto& b) { return a.generation() < b.generation(); });
  std::vector<WorkerId> in_all;
  for (const WorkerId worker : latest->workers()) {
    const bool everywhere = std::all_of(
        operations.begin(), operations.end(),
        [worker](const Contributors& operation) { return contains(operation.workers(), worker); });
    if (everywhere) in_all.push_back(worker);
  }
  commit(in_all);
}

std::size_t Sampler::done_in_epoch() const noexcept {
  return size_ - training::count(unused_);
}

/// A step that fails is tried again, but not as often as this.
void Sampler::note_repetition() {
  constexpr std::size_t kSuspicious = 10;
  if (open_.empty() || ++repetitions_ != kSuspicious) return;
  log::warn(
      "Sampler: {} draws in a row gave the same samples, because none was committed; call "
      "Sampler::commit with the contributors of each step's sum",
      kSuspicious + 1);
}

void Sampler::abandon() noexcept {
  open_.clear();
  members_draw_ = false;
  share_.clear();
  global_batch_ = 0;
}

void Sampler::begin_next_epoch_if_used_up() {
  if (!unused_.empty()) return;
  ++epoch_;
  unused_.push_back({0, size_});
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
    invalid_sampler("the saved sampler distributes " + std::to_string(size) +
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
}

}  // namespace elastic
