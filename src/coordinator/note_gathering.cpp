#include "coordinator/note_gathering.hpp"

#include <algorithm>
#include <variant>

namespace elastic::coordinator {

void NoteGathering::restart(RankRange ranks) {
  ranks_ = ranks;
  by_name_.clear();
  ready_.clear();
  blocked_.assign(static_cast<std::size_t>(ranks.count), false);
  blocked_count_ = 0;
  end_join();
  at_once_ = false;
  notes_.clear();
}

Status NoteGathering::add(RankRange from, const NoteItem& item, std::uint64_t bucket) {
  if (ranks_.count == 1) {
    write(from, item);
    return {};
  }
  if (std::holds_alternative<Blocked>(item)) {
    set_blocked(from, true);
    if (at_once_) write(from, item);
    if (blocked_count_ + joined_count_ == ranks_.count) release();  // no rank says more
    return {};
  }
  set_blocked(from, false);
  if (std::holds_alternative<Joined>(item)) return note_joined(from, item);
  if (std::holds_alternative<SubmitToGroup>(item)) {
    write(from, item);
    return {};
  }
  const auto* submission = std::get_if<SubmitByName>(&item);
  Word& word = submission != nullptr ? by_name_[submission->request.name] : ready_[bucket];
  if (Status first = note_said(word, from); !first.ok()) return first;
  word.held.emplace_back(from, item);
  const bool differs = submission != nullptr && bucket != 0;
  if (differs) {
    Word& others = ready_[bucket];  // not all will say that it is ready
    others.at_once = true;
    let_go(others);
  }
  if (at_once_ || differs || word.at_once) let_go(word);
  if (!is_said_by_all(word)) return {};
  conclude(word);
  if (submission != nullptr) {
    by_name_.erase(submission->request.name);
  } else {
    ready_.erase(bucket);
  }
  return {};
}

/// The ranks that have joined have nothing under way, so they are in no word that waits here.
Status NoteGathering::note_joined(RankRange from, const NoteItem& item) {
  const auto begin = joined_.begin() + (from.first - ranks_.first);
  if (std::find(begin, begin + from.count, true) != begin + from.count) {
    return Status(Code::kProtocol, "a rank has joined twice");
  }
  std::fill_n(begin, from.count, true);
  joined_count_ += from.count;
  write(from, item);
  for (auto& [name, word] : by_name_) {
    if (is_said_by_all(word)) conclude(word);
  }
  for (auto& [bucket, word] : ready_) {
    if (is_said_by_all(word)) conclude(word);
  }
  const auto is_concluded = [this](const auto& entry) { return is_said_by_all(entry.second); };
  std::erase_if(by_name_, is_concluded);
  std::erase_if(ready_, is_concluded);
  return {};
}

void NoteGathering::end_join() {
  joined_.assign(static_cast<std::size_t>(ranks_.count), false);
  joined_count_ = 0;
}

void NoteGathering::release() {
  if (at_once_) return;
  at_once_ = true;
  for (auto& [name, word] : by_name_) let_go(word);
  for (auto& [bucket, word] : ready_) let_go(word);
  // After the words of the same ranks: a rank that says anything else is not blocked.
  for (int first = 0; first < ranks_.count;) {
    const auto begin = blocked_.begin() + first;
    const auto end = std::find(begin, blocked_.end(), false);
    const auto count = static_cast<int>(end - begin);
    if (count > 0) write({ranks_.first + first, count}, Blocked{});
    first += count + 1;
  }
}

void NoteGathering::ordered(const Bucket& bucket) {
  ready_.erase(bucket.id);
  for (const NameState* tensor : bucket.tensors) by_name_.erase(*tensor->name);
  ordered();
}

void NoteGathering::ordered() {
  at_once_ = false;  // its result lets programs go on
  set_blocked(ranks_, false);
}

std::vector<RanksNote> NoteGathering::take() {
  std::vector<RanksNote> taken;
  for (auto& [from, writer] : notes_) {
    for (std::vector<std::byte>& bytes : writer.take()) taken.push_back({from, std::move(bytes)});
  }
  notes_.clear();
  return taken;
}

Status NoteGathering::note_said(Word& word, RankRange from) const {
  word.said.resize(blocked_.size());
  const auto begin = word.said.begin() + (from.first - ranks_.first);
  if (std::find(begin, begin + from.count, true) != begin + from.count) {
    return Status(Code::kProtocol, "the same was said twice");
  }
  std::fill_n(begin, from.count, true);
  word.count += from.count;
  return {};
}

void NoteGathering::let_go(Word& word) {
  for (const auto& [from, item] : word.held) write(from, item);
  word.parted = word.parted || !word.held.empty();
  word.held.clear();
}

/// All ranks have said it, but for those that have joined.
void NoteGathering::conclude(Word& word) {
  const bool alike =
      !word.parted && std::all_of(word.held.begin(), word.held.end(), [&](const auto& said) {
        return said.second == word.held.front().second;
      });
  if (!alike) return let_go(word);
  write_from_all(word.held.front().second);
}

void NoteGathering::set_blocked(RankRange from, bool blocked) {
  const auto begin = blocked_.begin() + (from.first - ranks_.first);
  const auto before = static_cast<int>(std::count(begin, begin + from.count, true));
  std::fill_n(begin, from.count, blocked);
  blocked_count_ += (blocked ? from.count : 0) - before;
}

/// All ranks say it, but for those that have joined.
void NoteGathering::write_from_all(const NoteItem& item) {
  if (joined_count_ == 0) return write(ranks_, item);
  for (int first = 0; first < ranks_.count;) {
    const auto begin = joined_.begin() + first;
    const auto count = static_cast<int>(std::find(begin, joined_.end(), true) - begin);
    if (count > 0) write({ranks_.first + first, count}, item);
    first += count + 1;
  }
}

void NoteGathering::write(RankRange from, const NoteItem& item) {
  if (notes_.empty() || notes_.back().first != from) notes_.emplace_back(from, NoteWriter());
  notes_.back().second.add(item);
}

}  // namespace elastic::coordinator
