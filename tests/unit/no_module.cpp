// A shared object like any other.
extern "C" int elastic_no_module() {
  return 0;
}
