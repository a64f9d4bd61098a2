#include <set>
#include <string>

#include <gtest/gtest.h>

#include "benchmarks/job/turns.hpp"
#include "benchmarks/steps/network_model.hpp"

namespace elastic::bench {
namespace {

struct Known {
  const char* name;
  std::size_t tensors;
  std::size_t parameters;
};

// The expected counts are those of the networks' reference implementations.
TEST(BenchNetworkModel, HasTheTensorsOfTheArchitecture) {
  for (const Known& known : {Known{"resnet50", 161, 25'557'032}, Known{"vgg16", 32, 138'357'544},
                             Known{"bert-large", 391, 335'141'888}}) {
    const NetworkModel model = make_model(known.name);
    EXPECT_EQ(model.name, known.name);
    EXPECT_EQ(model.parameters.size(), known.tensors) << known.name;
    EXPECT_EQ(model.count(), known.parameters) << known.name;
  }
  EXPECT_EQ(model_names().size(), 3U);
}

TEST(BenchNetworkModel, GradientsHaveNamesOfTheirOwn) {
  for (const std::string& name : model_names()) {
    std::set<std::string> names;
    for (const Parameter& parameter : make_model(name).parameters) {
      EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name << " of " << name;
    }
  }
}

TEST(BenchTurns, AddUpToAllCalls) {
  for (const int calls : {1, 2, 7, 20}) {
    int sum = 0;
    for (int turn = 0; turn < 4; ++turn) sum += calls_in_turn(calls, 4, turn);
    EXPECT_EQ(sum, calls);
  }
  EXPECT_EQ(calls_in_turn(20, 4, 3), 5);
}

}  // namespace
}  // namespace elastic::bench
