// A worker of the fault suite: makes steps as its arguments say (see Arguments), proves every
// result by itself, and tells line by line on standard output what happens, for the test to wait
// for and to compare:
//   joined <rank> <size> <generation>
//   entered <step>                      "train" only: the training is entered
//   saves | saves as joiner | loads     "train" only: a joiner is synchronised
//   step ...                            see StepReport
//   outcome finished|removed|stopped    "train" only
//   end                                 after shutdown
//   failed <code> <what>
#include <cstdlib>
#include <exception>
#include <string>

#include <elastic/elastic.hpp>

#include "fault/programs/arguments.hpp"
#include "fault/programs/call_stream.hpp"
#include "fault/programs/step_report.hpp"
#include "fault/programs/tell.hpp"
#include "fault/programs/training.hpp"

int main(int argc, char** argv) {
  using namespace elastic;
  const auto fail = [](const std::string& what) {
    fault::tell("failed " + what);
    return 3;
  };
  try {
    const auto arguments = fault::Arguments::parse(argc, argv);
    const char* slot = std::getenv("ELASTIC_SLOT");
    if (slot == nullptr) return fail("usage: ELASTIC_SLOT is not set");
    elastic::init();
    fault::tell("joined " + std::to_string(rank()) + " " + std::to_string(size()) + " " +
                std::to_string(generation()));
    if (arguments.kind == "train") {
      fault::Training(arguments, std::atoi(slot)).run();
    } else {
      fault::CallStream(arguments, std::atoi(slot)).run();
    }
    elastic::shutdown();
    fault::tell("end");
    return 0;
  } catch (const Error& error) {
    return fail(std::string(fault::name(error.code())) + " " + error.what());
  } catch (const std::exception& error) {
    return fail(std::string("oracle ") + error.what());
  }
}
