// A worker that makes wrong calls, and checks that it gets the right error and that the job goes
// on. The mode chooses the calls: "mismatch" (ranks make different calls), "named" (the same, under
// one name), "misuse" (calls that are wrong by themselves), "run-again" (by one rank alone). In
// "ended" and "ended-named" a rank ends as soon as it has the error of a mismatch. In "thrown" a
// call ends in an exception on rank 1, which goes on living until rank 0 has ended. In "callbacks"
// functions that the library calls make calls that have no place there.
#include "integration/programs/bad_calls.hpp"

#include <exception>
#include <string>

#include <elastic/elastic.hpp>

int main(int argc, char** argv) {
  using namespace elastic::bad_calls;
  if (argc != 2) fail("usage: bad_calls MODE");
  const std::string mode = argv[1];
  try {
    if (mode == "misuse") not_initialized("before init");
    elastic::init();
    if (mode == "mismatch") different_calls();
    if (mode == "named") different_tensors();
    if (mode == "run-again") call_run_again();
    if (mode == "ended" || mode == "ended-named") end_with_the_error(mode == "ended-named");
    if (mode == "misuse") wrong_by_itself();
    if (mode == "callbacks") calls_in_callbacks();
    if (mode == "thrown") exception_on_one_rank();
    elastic::shutdown();
    if (mode == "misuse") not_initialized("after shutdown");
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
