// A stand-in for the CUDA driver, with as many devices as CUDA_STAND_IN_DEVICES says (2), or whose
// start ends in the error CUDA_STAND_IN_ERROR.
#include <cstdlib>

#define EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

EXPORT int cuInit(unsigned) {
  return number("CUDA_STAND_IN_ERROR", 0);
}
EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = number("CUDA_STAND_IN_DEVICES", 2);
  return 0;
}
EXPORT int cuGetErrorString(int, const char** text) {
  *text = "forward compatibility was attempted";
  return 0;
}
