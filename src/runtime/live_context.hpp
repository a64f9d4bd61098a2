#pragma once

namespace elastic::runtime {

/// Held by each Context. A child of fork(2) whose parent has a Context at that moment may not make
/// one of its own: its environment is that of the parent, and it would claim the parent's
/// rank.
///
/// Any thread.
class LiveContext {
 public:
  /// Throws Error(kNotInitialized) in such a child.
  LiveContext();
  ~LiveContext();
  LiveContext(const LiveContext&) = delete;
  LiveContext& operator=(const LiveContext&) = delete;
};

}  // namespace elastic::runtime
