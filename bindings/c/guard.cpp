#include "guard.hpp"

#include <cstdint>
#include <new>

#include <elastic/error.hpp>

namespace elastic::c {

namespace {

/// This thread's latest error.
struct LastError {
  elastic_code code = ELASTIC_OK;
  std::string text;
  int peer = -1;
  std::uint64_t generation = 0;
  std::exception_ptr exception;
};

LastError& last_error() noexcept {
  thread_local LastError last;
  return last;
}

constexpr elastic_code code_of(ErrorCode code) {
  return static_cast<elastic_code>(static_cast<int>(code) + 1);
}
static_assert(code_of(ErrorCode::kInvalidArgument) == ELASTIC_INVALID_ARGUMENT);
static_assert(code_of(ErrorCode::kMismatch) == ELASTIC_MISMATCH);
static_assert(code_of(ErrorCode::kNotInitialized) == ELASTIC_NOT_INITIALIZED);
static_assert(code_of(ErrorCode::kUnavailable) == ELASTIC_UNAVAILABLE);
static_assert(code_of(ErrorCode::kRefused) == ELASTIC_REFUSED);
static_assert(code_of(ErrorCode::kTimeout) == ELASTIC_TIMEOUT);
static_assert(code_of(ErrorCode::kRootLost) == ELASTIC_ROOT_LOST);
static_assert(code_of(ErrorCode::kBelowMinimum) == ELASTIC_BELOW_MINIMUM);
static_assert(code_of(ErrorCode::kEvicted) == ELASTIC_EVICTED);
static_assert(code_of(ErrorCode::kRemoved) == ELASTIC_REMOVED);
static_assert(code_of(ErrorCode::kStopped) == ELASTIC_STOPPED);
static_assert(code_of(ErrorCode::kNotFinite) == ELASTIC_NOT_FINITE);
static_assert(code_of(ErrorCode::kInternal) == ELASTIC_INTERNAL);

/// The text is left out where there is no memory for it.
elastic_code keep(elastic_code code, const char* text, int peer,
                  std::uint64_t generation) noexcept {
  LastError& last = last_error();
  last.code = code;
  last.peer = peer;
  last.generation = generation;
  last.exception = std::current_exception();
  try {
    last.text = text;
  } catch (const std::bad_alloc&) {
    last.text.clear();
  }
  return code;
}

constexpr const char* kCodeNames[] = {"ELASTIC_OK",
                                      "ELASTIC_INVALID_ARGUMENT",
                                      "ELASTIC_MISMATCH",
                                      "ELASTIC_NOT_INITIALIZED",
                                      "ELASTIC_UNAVAILABLE",
                                      "ELASTIC_REFUSED",
                                      "ELASTIC_TIMEOUT",
                                      "ELASTIC_ROOT_LOST",
                                      "ELASTIC_BELOW_MINIMUM",
                                      "ELASTIC_EVICTED",
                                      "ELASTIC_REMOVED",
                                      "ELASTIC_STOPPED",
                                      "ELASTIC_NOT_FINITE",
                                      "ELASTIC_INTERNAL",
                                      "ELASTIC_OUT_OF_MEMORY",
                                      "ELASTIC_CALLBACK_FAILED"};
constexpr std::size_t kCodes = sizeof kCodeNames / sizeof *kCodeNames;
static_assert(kCodes == ELASTIC_CALLBACK_FAILED + 1);

}  // namespace

elastic_code keep_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(code_of(error.code()), error.what(), error.peer(), error.generation());
  } catch (const CallbackFailed& failed) {
    return keep(failed.code(), failed.what(), -1, 0);
  } catch (const std::bad_alloc&) {
    return keep(ELASTIC_OUT_OF_MEMORY, "there is not enough memory", -1, 0);
  } catch (const std::exception& error) {
    return keep(ELASTIC_INTERNAL, error.what(), -1, 0);
  } catch (...) {
    return keep(ELASTIC_INTERNAL, "an exception of an unknown type", -1, 0);
  }
}

void forget_exception() noexcept {
  last_error().exception = nullptr;
}

elastic_code known_code(elastic_code code) noexcept {
  return code < ELASTIC_OK || code > ELASTIC_CALLBACK_FAILED ? ELASTIC_CALLBACK_FAILED : code;
}

void raise_code(elastic_code code, const char* what) {
  if (code == ELASTIC_OK) return;
  const LastError& last = last_error();
  if (last.code == code && last.exception) std::rethrow_exception(last.exception);
  std::string text = std::string(what) + " has returned ";
  if (known_code(code) != code) {
    throw CallbackFailed(ELASTIC_CALLBACK_FAILED,
                         text + std::to_string(code) + ", which is no code of elastic");
  }
  text += elastic_code_name(code);
  if (code > ELASTIC_INTERNAL) throw CallbackFailed(code, text);
  throw Error(static_cast<ErrorCode>(code - 1), text);
}

void require(const void* pointer, const char* call, const char* what) {
  if (pointer != nullptr) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(call) + ": " + what + " is NULL");
}

}  // namespace elastic::c

using namespace elastic::c;

int elastic_abi_version(void) {
  return ELASTIC_ABI_VERSION;
}
const char* elastic_last_error(void) {
  return last_error().text.c_str();
}
int elastic_last_error_peer(void) {
  return last_error().peer;
}
uint64_t elastic_last_error_generation(void) {
  return last_error().generation;
}
const char* elastic_code_name(elastic_code code) {
  const auto number = static_cast<std::size_t>(code);
  return number < kCodes ? kCodeNames[number] : "unknown code";
}
int elastic_code_is_retryable(elastic_code code) {
  return code == ELASTIC_ROOT_LOST ? 1 : 0;
}
