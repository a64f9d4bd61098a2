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

/// How much longer a test waits in this build before it calls something hung: less than its
/// timeout.
inline constexpr int kHangFactor = kSlowness > 1 ? 3 : 1;

}  // namespace elastic
