#pragma once

namespace elastic {

/// The name under which a call of `join` is known: to the coordinator, in a timeline, and in
/// heartbeats.
inline constexpr const char* kJoinName = "elastic.join";

}  // namespace elastic
