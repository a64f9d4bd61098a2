#pragma once

namespace elastic {

/// How much slower everything is in this build: tests divide by it what takes long in proportion.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlowness = 6;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowness = 3;
#else
inline constexpr int kSlowness = 1;
#endif

}  // namespace elastic
