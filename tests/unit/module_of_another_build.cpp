// A module left behind by an older elastic. No job may call any function of it.
#include <cstdlib>

#include "base/module_file.hpp"

extern "C" [[gnu::visibility("default")]] const elastic::ModuleHead elastic_module = {
    "elastic 0.0.1 modules 1", []() -> std::string { std::abort(); }};
